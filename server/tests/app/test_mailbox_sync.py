"""Mailboxes that are larger than usual, end often, or become others while they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from personal_server.app import mail_batches, mailbox_sync, mailbox_talk
from personal_server.app.feeding import feed_store
from personal_server.feeds.feed_runs import PutOff, RunResult
from personal_server.feeds.wanted_imports import WantedImport
from server.tests.app.importing_here import ImportHere
from server.tests.app.test_feeding import Fed
from server.tests.app.test_mailbox_runs import (
    FeedOf,
    again,
    by_itself,
    compared,
    feed_of,
    mails_held,
    settings,
)
from tests.dovecot import PASSWORD
from tests.pretended_mailbox import PretendedMailbox, a_letter, pretended

__all__ = ["feed_of", "settings"]
FEW_COMMANDS = 20


def runs_of(fed: Fed, most: int = 30) -> list[RunResult]:
    """Run after run, until one has nothing left to do."""
    found = list[RunResult]()
    while len(found) < most:
        again(fed)
        found.append(by_itself(fed))
        if found[-1].code is None and not found[-1].settling:
            break
    return found


def test_one_that_ends_every_few_commands_is_fetched_whole(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox_sync, "HEADS_AT_ONCE", 4)
    monkeypatch.setattr(mailbox_talk, "MAILS_AT_ONCE", 2)
    with pretended(PretendedMailbox({"INBOX": 200, "Work": 20}, ends_at=100)) as mailbox:
        fed = feed_of(mailbox.place, PASSWORD)
        runs = runs_of(fed)
        assert [run.code for run in runs] == ["mailbox_unreachable", None]
        assert fed.feed.state == "waiting"
        # each once, and those of Work are copies
        assert (len(mailbox.bodies), fed.held()) == (200, {"messages": 200})
        mailbox.ends_at = None
        assert compared(fed).differences == []


def test_uids_that_mean_others_while_they_are_read_bring_no_mail_twice(feed_of: FeedOf) -> None:
    told = count(1)
    mailbox = PretendedMailbox(
        {"INBOX": 12},
        uidvalidity=lambda: next(told),  # another at every look
        letter=lambda _, uid: a_letter(1, uid),
    )
    with pretended(mailbox):
        fed = feed_of(mailbox.place, PASSWORD)
        for _ in range(4):
            again(fed)
            assert by_itself(fed).code is None
            assert fed.held() == {"messages": 12}
        mailbox.uidvalidity = lambda: 1_000
        assert runs_of(fed)[-1].code is None
        assert compared(fed).differences == []
    assert len(mailbox.bodies) == 24  # once, and once for the check


def test_half_a_mail_is_not_completed_by_that_of_another_folder(feed_of: FeedOf) -> None:
    """Cut within a body, whose UID is another mail's at the next look."""
    mailbox = PretendedMailbox({"INBOX": 1}, letter=lambda now, uid: a_letter(now, uid) * 40)
    cut = mailbox.letter(1, 1)[:3_000]
    with pretended(mailbox):
        fed = feed_of(mailbox.place, PASSWORD)
        mailbox.half = len(cut)
        assert by_itself(fed).code == "mailbox_unreachable"
        mailbox.half, mailbox.uidvalidity = None, lambda: 2
        assert runs_of(fed)[-1].code is None
        assert compared(fed).differences == []
        assert [mail["size_bytes"] for mail in mails_held(fed)] == [len(mailbox.letter(2, 1))]


def test_five_thousand_folders_are_asked_for_a_few_at_a_time(feed_of: FeedOf) -> None:
    names = ["INBOX", *(f"Folder {number}" for number in range(6_000))]
    with pretended(PretendedMailbox(dict.fromkeys(names, 1))) as mailbox:
        mailbox.letter = lambda _, uid: a_letter(1, uid)  # copies of one mail
        fed = feed_of(mailbox.place, PASSWORD)
        for _ in range(2):
            mailbox.commands.clear()
            again(fed)
            run = by_itself(fed)
            assert (run.code, run.gone) == (None, 0)
            asked = [each for each in mailbox.commands if each.startswith("STATUS")]
            assert len(asked) == 1 + 11
    assert (len(mailbox.bodies), fed.held()) == (1, {"messages": 1})


def test_a_run_that_lasted_long_ends_between_two_folders(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["INBOX", *(f"Folder {number}" for number in range(30))]
    with pretended(PretendedMailbox(dict.fromkeys(names, 0))) as mailbox:
        fed = feed_of(mailbox.place, PASSWORD)
        assert runs_of(fed)[-1].code is None
        monkeypatch.setattr(mailbox_sync, "RUN_SECONDS", 0.0)
        mailbox.commands.clear()
        again(fed)
        run = by_itself(fed)
        assert (run.code, run.settling) == (None, 1)
        assert len([each for each in mailbox.commands if each.startswith("STATUS")]) == 1


def test_a_mail_is_looked_for_in_all_folders_before_its_record_goes(feed_of: FeedOf) -> None:
    """Moved into a folder of the second of two looks, each of which asks for some of them."""
    names = ["INBOX", *(f"Folder {number:02}" for number in range(22))]
    empty = dict.fromkeys(names, 0)
    mailbox = PretendedMailbox(empty | {"INBOX": 1}, letter=lambda _, uid: a_letter(1, uid))
    with pretended(mailbox):
        fed = feed_of(mailbox.place, PASSWORD)
        feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))
        assert [by_itself(fed).code for _ in range(2)] == [None, None]
        mailbox.folders = empty | {"INBOX": 0}
        before = " ".join(mailbox.commands)
        mailbox.commands.clear()
        assert by_itself(fed).code is None  # the first look again
        first = " ".join(mailbox.commands)
        words = {name: f'STATUS "{name}"' for name in names}
        second = next(n for n in names if words[n] in before and words[n] not in first)
        mailbox.folders = empty | {second: 1}
        mailbox.ends_at = 5
        assert by_itself(fed).code == "mailbox_unreachable"
        mailbox.ends_at = None
        for _ in range(3):
            again(fed)
            assert (by_itself(fed).code, fed.held()) == (None, {"messages": 1})
        assert len(mailbox.bodies) == 1


def test_what_was_put_off_goes_on_into_the_account_that_it_filled(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in its mails tells that they are one owner's."""
    monkeypatch.setattr(mailbox_sync, "HEADS_AT_ONCE", 2)
    monkeypatch.setattr(mail_batches, "BATCH_ITEMS", 2)
    imported, numbers = ImportHere.__call__, count()

    def put_off(self: ImportHere, feed_id: str, wanted: WantedImport) -> Mapping[str, Any]:
        if next(numbers):
            raise PutOff
        return imported(self, feed_id, wanted)

    def to_one(now: int, uid: int) -> bytes:
        return a_letter(now, uid).replace(b"To: ada@example.org", b"To: p%d@x%d.org" % (uid, uid))

    with pretended(PretendedMailbox({"INBOX": 6}, letter=to_one)) as mailbox:
        fed = feed_of(mailbox.place, PASSWORD)
        with monkeypatch.context() as patch:
            patch.setattr(ImportHere, "__call__", put_off)
            assert fed.engine.run(fed.feed_id) is None
        assert fed.held() == {"messages": 2}
        assert by_itself(fed).code is None
    assert (len(fed.feed.connection_ids), fed.held()) == (1, {"messages": 6})


def test_a_folder_of_a_million_comes_part_by_part_in_few_commands(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox_sync, "HEADS_AT_ONCE", 50)
    monkeypatch.setattr(mailbox_sync, "RUN_SECONDS", 0.0)  # a run is over with its first batch
    monkeypatch.setattr(mail_batches, "BATCH_ITEMS", 50)
    with pretended(PretendedMailbox({"INBOX": 1_000_000}, "ESEARCH")) as mailbox:
        fed = feed_of(mailbox.place, PASSWORD)
        for parts in (1, 2):
            again(fed)
            run = by_itself(fed)
            assert (run.code, run.seen, run.settling) == (None, 1_000_000, 1)
            assert fed.held() == {"messages": 50 * parts}
            assert run.commands <= FEW_COMMANDS
        assert mailbox.bodies == list(range(1, 101))


def test_a_folder_that_goes_behind_a_killed_look_at_it_leaves_no_record(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed once it knows the copies in a new folder, which then gets another name."""
    mailbox = PretendedMailbox({"INBOX": 3}, letter=lambda _, uid: a_letter(1, uid))
    with pretended(mailbox):
        fed = feed_of(mailbox.place, PASSWORD)
        feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))
        assert by_itself(fed).code is None
        mailbox.folders = {"INBOX": 3, "Work": 2}

        def killed(*_: object) -> None:
            raise PutOff

        with monkeypatch.context() as patch:
            patch.setattr(mailbox_sync.MailboxSync, "_import", killed)
            fed.engine.run(fed.feed_id)
        mailbox.folders = {"INBOX": 0}
        again(fed)
        assert [by_itself(fed).code for _ in range(3)] == [None] * 3
        assert compared(fed).differences == []
    assert fed.held() == {}


def test_a_run_that_is_asked_for_loses_folders_that_only_mails_name(feed_of: FeedOf) -> None:
    """As versions left them that wrote the line of a folder after its mails."""
    mailbox = PretendedMailbox({"INBOX": 3, "Work": 2}, letter=lambda _, uid: a_letter(1, uid))
    with pretended(mailbox):
        fed = feed_of(mailbox.place, PASSWORD)
        store = feed_store(fed.stores)
        store.change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))
        assert by_itself(fed).code is None
        store.keep_feed_items(fed.feed_id, (), ["Work"])
        mailbox.folders = {"INBOX": 0}
        for _ in range(3):
            again(fed)
            assert fed.engine.run(fed.feed_id, retries=True) is not None
        assert compared(fed).differences == []
    assert fed.held() == {}
