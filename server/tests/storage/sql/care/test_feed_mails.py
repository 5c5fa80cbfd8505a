"""The mails of a fed mailbox are found by folder, by copy and by record, in parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from personal_server.storage.feed_rows import FeedMailRow
from personal_server.storage.sql.care import feed_mails
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from personal_server.storage.sql.care.feeds import SqlFeeds
from server.tests.feeds.test_feed_states import a_feed
from tests.new_files import new_file

INBOX, SENT = "INBOX", "Sent"
KEPT = FeedMailRow(feed_id="fee_1", folder=INBOX, uid=1, copy_of="<a>", record_key="r1")
MAILS = (
    KEPT,
    replace(KEPT, uid=2, copy_of="", record_key="r2", labels=("new",)),
    replace(KEPT, uid=3, copy_of="<b>", record_key="", code="too_large"),
    replace(KEPT, uid=4, copy_of="<c>", record_key="r4", gone_at=5),
    replace(KEPT, folder=SENT),
    replace(KEPT, folder=SENT, uid=9, copy_of="<d>", record_key="r9", gone_at=6),
)


@pytest.fixture
def mails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlFeedMails]:
    monkeypatch.setattr(feed_mails, "ASKED_AT_ONCE", 2)
    database = new_file(tmp_path / "data" / "records.db")
    SqlFeeds(database, "owner").add_feed(a_feed())
    kept = SqlFeedMails(database, "owner")
    kept.keep_mails("fee_1", MAILS)
    yield kept
    database.close()


def test_a_folder_is_walked_in_pages(mails: SqlFeedMails) -> None:
    assert mails.mails_of("fee_1", INBOX, 0, 3) == list(MAILS[:3])
    assert mails.mails_of("fee_1", INBOX, 3, 3) == [MAILS[3]]
    assert mails.mails_of("fee_2", INBOX, 0, 3) == []


def test_what_is_gone_is_counted_apart(mails: SqlFeedMails) -> None:
    assert mails.mail_counts("fee_1") == {INBOX: 3, SENT: 1}
    assert (mails.mail_count("fee_1", INBOX), mails.mail_count("fee_1", "Spam")) == (3, 0)
    assert [mails.gone_count("fee_1", before) for before in (5, 6, 7)] == [0, 1, 2]
    assert mails.gone_mails("fee_1", 7, 9) == [MAILS[3], MAILS[5]]
    assert mails.gone_mails("fee_1", 7, 1) == mails.gone_mails("fee_1", 6, 9) == [MAILS[3]]


def test_more_are_found_than_are_asked_for_at_once(mails: SqlFeedMails) -> None:
    assert mails.mails_at("fee_1", INBOX, [1, 2, 3, 4, 9]) == list(MAILS[:4])
    assert mails.mails_at("fee_1", INBOX, []) == []
    # a mail without a copy has none in common with another
    sought = ["<a>", "", "<b>", "<c>", "<d>"]
    assert mails.rows_of_copies("fee_1", sought) == [KEPT, MAILS[2], MAILS[4], MAILS[3], MAILS[5]]
    assert mails.copies("fee_1", sought) == [KEPT, MAILS[4], MAILS[3], MAILS[5]]
    assert mails.mails_by_key("fee_1", ["r1", "r2", "", "r9"]) == [
        KEPT,
        MAILS[1],
        MAILS[4],
        MAILS[5],
    ]


def test_a_mail_takes_its_place_again_and_others_go(mails: SqlFeedMails) -> None:
    changed = replace(KEPT, labels=("seen",))
    mails.keep_mails("fee_1", [changed], [(INBOX, 2), (SENT, 1)])
    assert mails.mails_of("fee_1", INBOX, 0, 9) == [changed, *MAILS[2:4]]
    assert mails.mails_of("fee_1", SENT, 0, 9) == [MAILS[5]]


def test_nothing_is_kept_of_a_feed_that_was_removed(mails: SqlFeedMails) -> None:
    mails.keep_mails("fee_2", [replace(KEPT, feed_id="fee_2")])
    assert mails.mail_counts("fee_2") == {}


@pytest.mark.parametrize("column", [FeedMailRow.copy_of, FeedMailRow.record_key], ids=str)
@pytest.mark.parametrize("with_records", [True, False])
def test_a_few_mails_are_looked_up_and_not_all_of_a_feed_read(
    tmp_path: Path, column: object, *, with_records: bool
) -> None:
    statement = cast(Any, feed_mails)._among(column, 200, with_records=with_records)
    asked = (f"EXPLAIN QUERY PLAN {statement}", ("owner", "fee_1", *["x"] * 200))
    with closing(new_file(tmp_path / "records.db")) as database, database.read() as session:
        told = " ".join(str(line[-1]) for line in session.rows(*asked))
    assert f"{column}=?" in told
