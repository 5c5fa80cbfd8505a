"""Feeds as the server wires them: what runs each kind, over which store.

Rule: nothing that a place holds is parsed in this process. Of a folder it takes names, sizes and
times, of an account bytes that it hands on (`feed_imports.py`, `dav_runs.py`, `mailbox_runs.py`).
Source: docs/contract/feeds.md 4 and 5.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import version
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from pdpp_sources.export_files import open_file
from pdpp_sources.started_process import READER, STARTS
from personal_server.app import mailbox_watches
from personal_server.app.fed_records import FedRecords
from personal_server.app.feed_imports import FOLDER, IMPORTER, ImportCommand
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.mail_runs import MailRuns
from personal_server.app.mailbox_records import SOURCE as MAIL
from personal_server.app.mailbox_records import MailboxRecords
from personal_server.app.mailbox_runs import MailboxRuns
from personal_server.app.mailbox_watches import MailboxWatch
from personal_server.app.stores import Stores
from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.stored import CollectionRun, RunStatus
from personal_server.feeds.feed_engine import FeedEngine, FeedRuns
from personal_server.feeds.feed_kinds import DAV_KINDS, FOLDER_KIND, JMAP, MAILBOX, SOURCES
from personal_server.feeds.feed_runs import FolderRuns, RunResult
from personal_server.feeds.feed_waits import FeedWaits
from personal_server.feeds.feed_watches import FeedWatches
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedStore
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from personal_server.storage.sql.care.feeds import SqlFeeds

if TYPE_CHECKING:
    from personal_server.app.background_tasks import BackgroundTasks
    from personal_server.app.dav_runs import DavRuns

FEEDING_SECONDS = 2.0
DELETED_AT_ONCE = 200


def feed_store(stores: Stores) -> FeedStore:
    """The feeds of this store; no member of `Stores`, since imports have no need of it."""
    return SqlFeeds(stores.database, stores.configuration.subject_id)


def feed_engine(settings: Settings, stores: Stores, importer: ImportCommand) -> FeedEngine:
    """What runs the feeds of this data directory."""
    store = feed_store(stores)
    folders = FolderRuns(
        store,
        importer,
        _FolderRecords(stores),
        settings.data_dir / FOLDER,
        version("pdpp-sources"),
        stores.clock,
        open_file,
    )
    holder = f"{socket.gethostname()}:{os.getpid()}:{stores.random_bytes(4).hex()}"
    waits = FeedWaits()
    mailboxes = mailbox_runs(settings, stores, importer, waits)
    accounts = _Accounts(stores)
    jmap, dav = (
        _LoadedLater(partial(runs, settings, stores, importer)) for runs in (jmap_runs, dav_runs)
    )
    by_kind: Mapping[str, FeedRuns] = {
        FOLDER_KIND: folders,
        MAILBOX: mailboxes,
        JMAP: jmap,
    } | dict.fromkeys(DAV_KINDS, dav)
    kinds = {MAILBOX: lambda: MailboxWatch(FeedSecrets.of(stores), mailbox_watches.IDLE_SECONDS)}
    watches = FeedWatches(store, kinds, stores.clock, holder)
    return FeedEngine(
        store, by_kind, accounts, stores.clock, stores.random_bytes, holder, watches, waits
    )


def mailbox_runs(
    settings: Settings, stores: Stores, importer: ImportCommand, waits: FeedWaits | None = None
) -> MailRuns:
    """What runs the mailboxes of this data directory that speak IMAP."""
    return _mail_runs(MailboxRuns, settings, stores, importer, waits or FeedWaits())


def jmap_runs(settings: Settings, stores: Stores, importer: ImportCommand) -> MailRuns:
    """What runs the JMAP accounts of this data directory."""
    from personal_server.app.jmap_runs import JmapRuns  # noqa: PLC0415 (few have such feeds)

    return _mail_runs(JmapRuns, settings, stores, importer, FeedWaits())


def _mail_runs(
    runs: type[MailRuns],
    settings: Settings,
    stores: Stores,
    importer: ImportCommand,
    waits: FeedWaits,
) -> MailRuns:
    staging, reader = settings.data_dir / FOLDER, version("pdpp-sources")
    secrets = FeedSecrets.of(stores)
    mails = SqlFeedMails(stores.database, stores.configuration.subject_id)
    records = MailboxRecords(mails, _fed_records(stores, MAIL))
    return runs(
        feed_store(stores), mails, records, importer, staging, reader, stores.clock, secrets, waits
    )


def dav_runs(settings: Settings, stores: Stores, importer: ImportCommand) -> DavRuns:
    """What runs the calendars and address books of this data directory."""
    from personal_server.app.dav_records import DavRecords  # noqa: PLC0415 (few have such feeds)
    from personal_server.app.dav_runs import DavRuns  # noqa: PLC0415

    staging, reader = settings.data_dir / FOLDER, version("pdpp-sources")
    secrets = FeedSecrets.of(stores)
    records = {
        kind: DavRecords(_fed_records(stores, SOURCES[kind]), stores.clock) for kind in DAV_KINDS
    }
    return DavRuns(feed_store(stores), records, importer, staging, reader, stores.clock, secrets)


def _fed_records(stores: Stores, source: str) -> FedRecords:
    return FedRecords(stores.records, source, stores.clock, stores.random_bytes)


class _FolderRecords(msgspec.Struct, frozen=True):
    """Records of the accounts that folders fill."""

    stores: Stores

    def delete(self, account: str, stream: str, keys: Iterable[str]) -> int:
        """As the source of the account declares them; none of an account that went."""
        with self.stores.records.snapshot() as snapshot:
            there = {each.connection_id: each.connector_key for each in snapshot.connections()}
        if account not in there:
            return 0
        records, waiting = _fed_records(self.stores, there[account]), iter(keys)
        count = 0
        while part := list(islice(waiting, DELETED_AT_ONCE)):
            count += records.delete(account, stream, part)
        return count


class _LoadedLater(msgspec.Struct, frozen=True):
    """Runs feeds of a kind; what fetches them is loaded once one is run."""

    load: Callable[[], FeedRuns]

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Fetch what changed, and import it.  Raises: PutOff."""
        return self.load().run(feed, retries=retries)


def keep_feeds(background: BackgroundTasks, settings: Settings, stores: Stores) -> None:
    """Run the feeds of a server, as one process does for all.

    What its processes come from loads at once what imports need, so that all of them share it.
    """
    STARTS.preloaded = (IMPORTER, READER)
    importer = ImportCommand.of(settings)
    engine = feed_engine(settings, stores, importer)
    stop = partial(stop_feeding, engine, importer)
    background.register("feeding", FEEDING_SECONDS, engine.work, stop=stop)


def stop_feeding(engine: FeedEngine, importer: ImportCommand) -> None:
    """End the imports under way, and wait a little until their feeds are given back."""
    importer.stop()
    engine.stop()


class _Accounts(msgspec.Struct, frozen=True):
    """The accounts of a store, as feeds ask for them."""

    stores: Stores

    def usable(self) -> frozenset[str]:
        """Those that are there and take records."""
        with self.stores.records.snapshot() as snapshot:
            there = snapshot.connections()
        return frozenset(
            each.connection_id for each in there if each.status is not ConnectionStatus.REVOKED
        )

    def note_run(
        self, feed_id: str, connection_ids: Iterable[str], at_ns: int, *, succeeded: bool
    ) -> None:
        """By the newest word about their runs."""
        status = RunStatus.SUCCEEDED if succeeded else RunStatus.FAILED
        for each in connection_ids:
            self.stores.records.record_run(each, CollectionRun(feed_id, status, at_ns))
