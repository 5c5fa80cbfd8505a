"""New mail is told at once by a real dovecot, and a server that hangs is noticed."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from pdpp_sources import mailbox_process
from personal_server.app import mailbox_watches
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feeding import feed_store
from personal_server.app.mailbox_watches import MailboxWatch
from personal_server.feeds.feed_watches import NEVER_TOLD
from server.tests.app.http_server.served import until
from server.tests.app.test_mailbox_runs import (
    FOLDER,
    LOGGED_IN,
    FeedOf,
    feed_of,
    hostile,
    put,
    server,
    settings,
    signed_in,
)
from tests.dovecot import PASSWORD, MailServer, needs_dovecot

__all__ = ["feed_of", "server", "settings"]


@needs_dovecot
def test_new_mail_is_fetched_at_once_and_a_stop_ends_the_wait(
    server: MailServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(2))
    fed = feed_of(server.place, PASSWORD)
    monkeypatch.setattr(mailbox_watches, "IDLE_SECONDS", 2)
    feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, every_seconds=3600))

    def turned() -> None:
        fed.engine.work()
        time.sleep(0.05)

    def held() -> bool:
        turned()
        return fed.held().get("messages") == 2

    until(held)
    until(lambda: (turned(), server.log.count("Login: user"))[1] >= 3)
    begun = time.monotonic()
    with signed_in(server) as client:
        put(client, "INBOX", range(2, 3))
    until(lambda: (turned(), fed.held()["messages"])[1] == 3)
    print(f"a new mail is a record after {time.monotonic() - begun:.1f} s")
    assert fed.feed.state in ("waiting", "running")
    begun = time.monotonic()
    fed.engine.stop()
    until(lambda: not any(each.name.startswith("watch ") for each in threading.enumerate()))
    assert time.monotonic() - begun < 5


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox_process, "SILENCE_SECONDS", 6.0)


WAITS = [
    *LOGGED_IN[:1],
    b"TAG OK [CAPABILITY IMAP4rev1 IDLE] in\r\n",
    FOLDER[-1],
    b"+ idling\r\n* 4 EXISTS\r\n* OK still here\r\n",
]


@pytest.mark.usefixtures("hasty")
def test_a_server_that_hangs_while_one_waits_is_noticed_by_the_renewal(feed_of: FeedOf) -> None:
    changes: list[None] = []
    with hostile([*WAITS, b""]) as port:
        fed = feed_of(f"imap://ada@127.0.0.1:{port}", "open sesame 42")
        watch = MailboxWatch(FeedSecrets.of(fed.stores), idle_seconds=1)
        code = watch.wait(fed.feed, lambda: changes.append(None))
    assert (code, len(changes)) == ("mailbox_unreachable", 2)


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([*LOGGED_IN, b""], NEVER_TOLD),
        ([LOGGED_IN[0], b"TAG NO no\r\n"], "sign_in_refused"),
        ([*WAITS[:3], b"TAG BAD what\r\n"], "mailbox_misbehaves"),
        (WAITS, "mailbox_unreachable"),
    ],
)
@pytest.mark.usefixtures("hasty")
def test_a_server_that_does_not_tell_ends_the_wait(
    feed_of: FeedOf, answers: list[bytes], code: str
) -> None:
    with hostile(answers) as port:
        fed = feed_of(f"imap://ada@127.0.0.1:{port}", "open sesame 42")
        watch = MailboxWatch(FeedSecrets.of(fed.stores), idle_seconds=1)
        assert watch.wait(fed.feed, lambda: None) == code
