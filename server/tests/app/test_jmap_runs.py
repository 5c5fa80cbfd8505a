"""JMAP accounts against a real Cyrus, and against a double that misbehaves."""

from __future__ import annotations

import imaplib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feeding import feed_engine, feed_store, jmap_runs
from personal_server.app.stores import open_stores
from personal_server.cli.feed_checks import FeedComparison, check_mailbox
from personal_server.feeds.feed_kinds import JMAP
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.settings import Settings
from server.tests.app.importing_here import ImportHere
from server.tests.app.test_feeding import Fed, a_mail, aged, an_mbox
from server.tests.cli.import_machine import shared_reader
from server.tests.feeds.test_feed_states import a_feed
from tests.cyrus import CyrusServer, cyrus_server, needs_cyrus
from tests.dovecot import PASSWORD

FeedOf = Callable[..., Fed]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", time_zone="UTC")


@pytest.fixture
def feed_of(settings: Settings) -> Iterator[FeedOf]:
    with open_stores(settings, serving=False) as stores:

        def fed(place: str, password: str = PASSWORD, deletions: str = "keep") -> Fed:
            feed = a_feed(kind=JMAP, layout=JMAP, place=place, due_at_ns=stores.clock())
            feed_store(stores).add_feed(replace(feed, deletions=deletions))
            FeedSecrets.of(stores).keep(feed, password)
            importer = ImportHere.over(stores, settings)
            return Fed(stores, feed_engine(settings, stores, importer), feed.feed_id)

        yield fed


@pytest.fixture(scope="module")
def cyrus() -> Iterator[CyrusServer]:
    with cyrus_server() as found:
        yield found


def by_itself(fed: Fed) -> RunResult:
    """A run that nobody asked for."""
    feed_store(fed.stores).change_feed(
        fed.feed_id, lambda feed: replace(feed, state="waiting", holder=None)
    )
    result = fed.engine.run(fed.feed_id)
    assert result is not None
    return result


def put(client: imaplib.IMAP4, folder: str, numbers: range) -> None:
    client.create(folder)
    for number in numbers:
        client.append(folder, "", "", a_mail(number).as_bytes().replace(b"\n", b"\r\n"))


def compared(fed: Fed, settings: Settings) -> FeedComparison:
    runs = jmap_runs(settings, fed.stores, ImportHere.over(fed.stores, settings))
    with shared_reader() as reader:
        return check_mailbox(fed.feed, fed.stores, reader, "UTC", runs)


@needs_cyrus
def test_an_account_that_was_imported_before_has_nothing_new_and_stays_current(
    cyrus: CyrusServer, settings: Settings, feed_of: FeedOf, tmp_path: Path
) -> None:
    with cyrus.signed_in("ada") as client:
        put(client, "INBOX", range(20))
        put(client, "Work/Bills", range(20, 30))
        put(client, "Junk", range(30, 33))
    fed = feed_of(cyrus.place("ada"))
    exported = aged(tmp_path / "export" / "mail.mbox", an_mbox(range(30)))
    ImportHere.over(fed.stores, settings)("fee_other", WantedImport([exported], exported.parent))
    first = fed.run()
    assert (first.code, first.seen, first.new, first.records_new) == (None, 30, 30, 0)
    assert fed.held() == {"messages": 30}
    assert compared(fed, settings).differences == []
    idle = by_itself(fed)
    assert (idle.new, idle.records_new, idle.code) == (0, 0, None)
    assert idle.commands == 1
    assert idle.size_bytes < 2_000
    with cyrus.signed_in("ada") as client:
        client.select("INBOX", readonly=True)
        assert client.search(None, "SEEN")[1] == [b""]  # nothing was marked as read
        client.select("INBOX")
        client.copy("1", "Work/Bills")
        client.store("1", "+FLAGS", r"(\Deleted)")
        client.store("2", "+FLAGS", r"(\Seen \Flagged Invoices)")
        client.expunge()
        put(client, "INBOX", range(40, 41))
    moved = by_itself(fed)
    assert (moved.code, moved.records_new) == (None, 1)
    assert fed.held() == {"messages": 31}
    assert compared(fed, settings).differences == []
