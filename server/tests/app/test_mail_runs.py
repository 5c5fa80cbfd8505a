"""Runs of mail whose servers say nothing for long: how long they wait, and who ends it."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from pdpp_sources import mailbox_process
from personal_server.app.feeding import feed_store
from personal_server.feeds import feed_engine, feed_waits
from server.tests.app.http_server.served import until
from server.tests.app.test_mailbox_runs import FeedOf, by_itself, feed_of, settings
from tests.dovecot import PASSWORD
from tests.pretended_mailbox import PretendedMailbox, pretended

__all__ = ["feed_of", "settings"]
SHORT, BEYOND = 2.0, 3.0


def silent_at(word: str, ended: threading.Event, seconds: float) -> PretendedMailbox:
    """A mailbox of three mails whose server says nothing for a while before it does that."""
    return PretendedMailbox(
        {"INBOX": 3}, before=lambda command: word in command and ended.wait(seconds)
    )


@pytest.mark.parametrize("word", ["LIST", "STATUS", "EXAMINE", "RFC822.SIZE"])
def test_a_server_may_look_through_a_folder_for_longer_than_it_may_be_silent(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(mailbox_process, "SILENCE_SECONDS", SHORT)
    with pretended(silent_at(word, threading.Event(), BEYOND)) as mailbox:
        fed = feed_of(mailbox.place, PASSWORD)
        assert by_itself(fed).code is None
    assert fed.held() == {"messages": 3}


@pytest.mark.parametrize("word", ["LOGIN", "EXAMINE", "BODY.PEEK[]"])
def test_one_that_is_silent_for_longer_is_gone(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    ended = threading.Event()
    monkeypatch.setattr(mailbox_process, "SILENCE_SECONDS", SHORT)
    monkeypatch.setattr(mailbox_process, "SEARCH_SILENCE_SECONDS", SHORT)
    with pretended(silent_at(word, ended, 60)) as mailbox:
        fed = feed_of(mailbox.place, PASSWORD)
        assert by_itself(fed).code == "mailbox_unreachable"
        ended.set()


@pytest.mark.parametrize("ends", ["pause", "stop"])
def test_who_waits_for_a_silent_server_is_seen_and_ends_without_a_failure(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    asked, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(feed_waits, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(feed_engine, "RENEW_SECONDS", 0.2)

    def silent(command: str) -> None:
        if command.startswith("LIST"):
            asked.set()
            ended.wait(60)

    with pretended(PretendedMailbox({"INBOX": 3}, before=silent)) as mailbox:
        fed = feed_of(mailbox.place, PASSWORD)
        run = threading.Thread(target=fed.engine.run, args=(fed.feed_id,))
        run.start()
        assert asked.wait(60)
        until(lambda: fed.feed.silent_since_ns is not None)
        if ends == "pause":
            feed_store(fed.stores).change_feed(
                fed.feed_id, lambda e: replace(e, state="paused", holder=None)
            )
        else:
            fed.engine.stop()
        run.join(60)
        ended.set()
        assert not run.is_alive()
    feed = fed.feed
    assert (feed.state, feed.code) == ("paused" if ends == "pause" else "waiting", None)
    assert ends == "pause" or feed.silent_since_ns is None
    (receipt,) = feed_store(fed.stores).feed_runs(fed.feed_id, 1)
    assert receipt.outcome == "put_off"
