"""Feeds in both databases: the lease is one process's, and receipts are bounded."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from pdpp_kernel.errors import InvalidState, NotFound
from personal_server.feeds import feed_states
from personal_server.feeds.feed_states import LEASE_NS
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.feed_rows import FeedItemRow, FeedMailRow, FeedRow, FeedRunRow
from personal_server.storage.sql.care import feeds as stored_feeds
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from personal_server.storage.sql.care.feeds import SqlFeeds
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from server.tests.feeds.test_feed_states import NOW, a_feed
from server.tests.storage.conftest import BY_DATABASE, Opened
from server.tests.storage.worlds import furnish


@pytest.fixture
def feeds(opened: Opened, tmp_path: Path) -> Iterator[SqlFeeds]:
    with opened(tmp_path) as store:
        yield SqlFeeds(cast(Any, store)._database, "owner")


def an_item(name: str, **over: Any) -> FeedItemRow:
    row = FeedItemRow(
        feed_id="fee_1", item=name, mark="1", state="stored", reader="1", at_ns=NOW, since_ns=NOW
    )
    return replace(row, **over)


def a_run(began: int, **over: Any) -> FeedRunRow:
    row = FeedRunRow(
        feed_id="fee_1", began_at_ns=began, ended_at_ns=began + 1, outcome="succeeded", seen=3
    )
    return replace(row, **over)


@BY_DATABASE
def test_what_is_kept_is_found_again(feeds: SqlFeeds) -> None:
    feed = a_feed(connection_ids=("cin_a",), account="Mail", reached=2**62)
    feeds.add_feed(feed)
    assert feeds.feeds() == [feed]
    assert feeds.change_feed("fee_1", feed_states.pause).state == "paused"
    feeds.keep_feed_items("fee_1", [an_item("b"), an_item("a", code="x")])
    feeds.keep_feed_items("fee_1", [an_item("a")], ["b"])
    assert feeds.feed_items("fee_1") == [an_item("a")]
    feeds.remove_feed("fee_1")
    assert (feeds.feeds(), feeds.feed_items("fee_1"), feeds.feed_runs("fee_1", 9)) == ([], [], [])


@BY_DATABASE
def test_a_name_and_a_folder_are_of_one_feed(feeds: SqlFeeds) -> None:
    feeds.add_feed(a_feed())
    for same in ({"name": "Other"}, {"place": "/other"}):
        with pytest.raises(InvalidState):
            feeds.add_feed(a_feed(feed_id="fee_2", **same))
    feeds.add_feed(a_feed(feed_id="fee_2", name="Other", place="/other"))
    for beside in ("/home/ada/Downloads/Vault", "/home/ada"):  # each file would come twice
        with pytest.raises(InvalidState):
            feeds.add_feed(a_feed(feed_id="fee_3", name="Third", place=beside))
    feeds.add_feed(a_feed(feed_id="fee_3", name="Third", place="/home/ada/Downloads 2"))


@BY_DATABASE
def test_of_many_that_want_the_lease_one_has_it(feeds: SqlFeeds) -> None:
    feeds.add_feed(a_feed())

    def takes(holder: str) -> bool:
        try:
            feeds.change_feed("fee_1", lambda feed: feed_states.begin(feed, holder, NOW))
        except InvalidState:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(takes, map(str, range(16)))) == 1
    holder = str(feeds.feeds()[0].holder)
    later = NOW + LEASE_NS
    taken = feeds.change_feed("fee_1", lambda feed: feed_states.begin(feed, "next", later))
    assert taken.holder == "next"

    def ends(feed: FeedRow) -> FeedRow:
        return feed_states.succeed(feed, holder, later, later)

    assert feeds.change_feed("fee_1", ends) == taken


@BY_DATABASE
def test_runs_that_found_nothing_are_one_receipt(
    feeds: SqlFeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_feeds, "RECEIPTS_KEPT", 3)
    feeds.add_feed(a_feed())
    for began in (1, 2, 3):
        feeds.keep_feed_run(a_run(began))
    assert feeds.feed_runs("fee_1", 9) == [a_run(1, ended_at_ns=4, runs=3)]
    feeds.keep_feed_run(a_run(5, new=1, commands=1))
    feeds.keep_feed_run(a_run(6))
    assert [each.began_at_ns for each in feeds.feed_runs("fee_1", 9)] == [6, 5, 1]
    for began in (7, 8, 9):
        feeds.keep_feed_run(a_run(began, outcome="failed", code="folder_gone"))
    assert [each.began_at_ns for each in feeds.feed_runs("fee_1", 9)] == [9, 8, 7]


@BY_DATABASE
def test_a_feed_that_was_removed_stays_removed(feeds: SqlFeeds) -> None:
    with pytest.raises(NotFound):
        feeds.change_feed("fee_1", feed_states.pause)
    feeds.keep_feed_items("fee_1", [an_item("a")])
    feeds.keep_feed_run(a_run(1))
    assert (feeds.feed_items("fee_1"), feeds.feed_runs("fee_1", 9)) == ([], [])


@BY_DATABASE
def test_with_an_account_goes_what_its_feeds_say_of_its_records(
    opened: Opened, tmp_path: Path
) -> None:
    with opened(tmp_path) as store:
        feeds = SqlFeeds(cast(Any, store)._database, "owner")
        furnish(store, "cin_a")
        feeds.add_feed(a_feed(connection_ids=("cin_a", "cin_b")))
        feeds.add_feed(
            a_feed(feed_id="fee_2", name="Other", place="/other", connection_ids=("cin_b",))
        )
        feeds.keep_feed_items("fee_1", [an_item("secret.md", record_keys=("notes/secret",))])
        feeds.keep_feed_items("fee_2", [an_item("b", feed_id="fee_2")])
        store.erase_connection("cin_a", 9)
        assert feeds.feed_items("fee_1") == []
        assert [each.item for each in feeds.feed_items("fee_2")] == ["b"]
        # a run that was under way says once more what it did
        feeds.keep_feed_items("fee_1", [an_item("secret.md", record_keys=("notes/secret",))])
        feeds.keep_feed_items("fee_2", [an_item("c", feed_id="fee_2")])
        mails = SqlFeedMails(cast(Any, store)._database, "owner")
        for each in ("fee_1", "fee_2"):
            row = FeedMailRow(feed_id=each, folder="INBOX", uid=1, copy_of="<a@b>", record_key="a")
            mails.keep_mails(each, [row])
        assert feeds.feed_items("fee_1") == []
        assert [each.item for each in feeds.feed_items("fee_2")] == ["b", "c"]
        assert (mails.mail_counts("fee_1"), mails.mail_counts("fee_2")) == ({}, {"INBOX": 1})


@BY_DATABASE
def test_what_a_feed_took_is_forgotten_and_its_receipts_stay(feeds: SqlFeeds) -> None:
    other = replace(an_item("c"), feed_id="fee_2")
    feeds.add_feed(a_feed())
    feeds.add_feed(a_feed(feed_id="fee_2", name="Other", place="/other"))
    feeds.keep_feed_items("fee_1", [an_item("a"), an_item("b")])
    feeds.keep_feed_items("fee_2", [other])
    feeds.keep_feed_run(a_run(1))
    feeds.forget_ledger("fee_1")
    assert (feeds.feed_items("fee_1"), feeds.feed_items("fee_2")) == ([], [other])
    assert len(feeds.feed_runs("fee_1", 9)) == 1


@BY_DATABASE
def test_a_change_is_kept_with_what_the_owner_s_log_says_of_it(feeds: SqlFeeds) -> None:
    line = AuditRow(event="feed.paused", at_ns=NOW, actor="owner")
    feeds.add_feed(a_feed())
    seen: list[tuple[str, str]] = []

    def note(before: FeedRow, after: FeedRow) -> AuditRow | None:
        seen.append((before.state, after.state))
        return line if before.state != after.state else None

    for _ in range(2):
        assert feeds.change_feed("fee_1", feed_states.pause, note).state == "paused"
    assert seen == [("waiting", "paused"), ("paused", "paused")]
    database = cast(Any, feeds)._database
    with SqlAuthorizationStore(database, "owner").read() as reader:
        assert [row.event for row in reader.rows(AuditRow)] == ["feed.paused"]
