"""Feeds as the server wires them: what they find is read by `pdpp import`, in its own process.

Rule: the command finds the very store that serves; nothing of a place is read in this process but
names, sizes and times.
Source: docs/contract/feeds.md 4 and 5.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

import msgspec
import orjson

from pdpp_kernel.system.file_locks import try_lock
from pdpp_sources.reader_process import WORKER as READER
from pdpp_sources.started_process import STARTS, StartedProcess, started_process
from personal_server.app import mailbox_watches
from personal_server.app.fed_records import FedRecords
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.mailbox_records import SOURCE as MAIL
from personal_server.app.mailbox_records import MailboxRecords
from personal_server.app.mailbox_runs import KIND as MAILBOX
from personal_server.app.mailbox_runs import MailboxRuns
from personal_server.app.mailbox_watches import MailboxWatch
from personal_server.app.stores import Stores
from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.stored import CollectionRun, RunStatus
from personal_server.feeds.feed_engine import FeedEngine, FeedRuns
from personal_server.feeds.feed_runs import FolderRuns, PutOff, RunResult
from personal_server.feeds.feed_watches import FeedWatches
from personal_server.feeds.fetched_batches import DAV_KINDS
from personal_server.feeds.import_reports import TOO_SLOW
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.feeds.watched_folders import FolderTrouble, files_beneath
from personal_server.settings import Settings, command_environment
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedStore
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from personal_server.storage.sql.care.feeds import SqlFeeds

if TYPE_CHECKING:
    from personal_server.app.dav_runs import DavRuns

FOLDER = "feeds"
FEEDING_SECONDS = 2.0
KIND = "folder"
IMPORTER = "personal_server.cli.fed_import"
IMPORT_SECONDS, BYTES_A_SECOND = 1_800.0, 128 * 1024
"""How long an import may take, and how many bytes give it a second more."""
_PIECE_BYTES = 64 * 1024


def feed_store(stores: Stores) -> FeedStore:
    """The feeds of this store; no member of `Stores`, since imports have no need of it."""
    return SqlFeeds(stores.database, stores.configuration.subject_id)


def feed_engine(settings: Settings, stores: Stores, importer: ImportCommand) -> FeedEngine:
    """What runs the feeds of this data directory."""
    store = feed_store(stores)
    folders = FolderRuns(
        store, importer, settings.data_dir / FOLDER, version("pdpp-sources"), stores.clock
    )
    holder = f"{socket.gethostname()}:{os.getpid()}:{stores.random_bytes(4).hex()}"
    mailboxes = mailbox_runs(settings, stores, importer)
    accounts = _Accounts(stores)
    later = _DavLater(settings, stores, importer)
    by_kind: Mapping[str, FeedRuns] = {KIND: folders, MAILBOX: mailboxes} | dict.fromkeys(
        DAV_KINDS, later
    )
    kinds = {MAILBOX: lambda: MailboxWatch(FeedSecrets.of(stores), mailbox_watches.IDLE_SECONDS)}
    watches = FeedWatches(store, kinds, stores.clock, holder)
    return FeedEngine(store, by_kind, accounts, stores.clock, stores.random_bytes, holder, watches)


def mailbox_runs(settings: Settings, stores: Stores, importer: ImportCommand) -> MailboxRuns:
    """What runs the mailboxes of this data directory."""
    staging, reader = settings.data_dir / FOLDER, version("pdpp-sources")
    secrets = FeedSecrets.of(stores)
    mails = SqlFeedMails(stores.database, stores.configuration.subject_id)
    records = MailboxRecords(mails, _fed_records(stores, MAIL))
    return MailboxRuns(
        feed_store(stores), mails, records, importer, staging, reader, stores.clock, secrets
    )


def dav_runs(settings: Settings, stores: Stores, importer: ImportCommand) -> DavRuns:
    """What runs the calendars and address books of this data directory."""
    from personal_server.app.dav_records import DavRecords  # noqa: PLC0415 (few have such feeds)
    from personal_server.app.dav_runs import SOURCES, DavRuns  # noqa: PLC0415

    staging, reader = settings.data_dir / FOLDER, version("pdpp-sources")
    secrets = FeedSecrets.of(stores)
    records = {
        kind: DavRecords(_fed_records(stores, source), stores.clock)
        for kind, source in SOURCES.items()
    }
    return DavRuns(feed_store(stores), records, importer, staging, reader, stores.clock, secrets)


def _fed_records(stores: Stores, source: str) -> FedRecords:
    return FedRecords(stores.records, source, stores.clock, stores.random_bytes)


@dataclass(frozen=True, slots=True)
class _DavLater:
    """Runs calendars and address books; what reads them is loaded once one is run."""

    settings: Settings
    stores: Stores
    importer: ImportCommand

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Fetch what changed, and import it.  Raises: PutOff."""
        return dav_runs(self.settings, self.stores, self.importer).run(feed, retries=retries)


def stop_feeding(engine: FeedEngine, importer: ImportCommand) -> None:
    """End the imports under way, and wait a little until their feeds are given back."""
    importer.stop()
    engine.stop()


@dataclass(frozen=True, slots=True)
class _Accounts:
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


@dataclass(slots=True)
class ImportCommand:
    """`pdpp import --json`, in a process of its own, one at a time for each feed.

    It holds a lock in the folder while it lives, and ends soon after the server.
    Shapes: `module` is what runs the command, `least_seconds` how long the smallest import may
        take.
    """

    folder: Path
    environment: Mapping[str, str]
    module: str = field(default=IMPORTER, kw_only=True)
    least_seconds: float = field(default=IMPORT_SECONDS, kw_only=True)
    _running: list[StartedProcess] = field(default_factory=list[StartedProcess], init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _is_stopping: bool = field(default=False, init=False)

    @classmethod
    def of(cls, settings: Settings) -> ImportCommand:
        """That which finds the store of these settings."""
        STARTS.preloaded = (IMPORTER, READER)
        return cls(settings.data_dir / FOLDER, command_environment(settings))

    def __call__(
        self, feed_id: str, paths: Sequence[Path], within: Path, account: str | None
    ) -> Mapping[str, Any]:
        """What it printed; nothing where it was ended, and why where it took too long.

        Raises: PutOff.
        """
        texts, environment = list(map(str, paths)), dict(self.environment)
        wanted = WantedImport(texts, str(within), account, environment)
        with self._claimed(feed_id) as claim, self._started(claim) as process:
            with suppress(BrokenPipeError):
                process.requests.write(msgspec.msgpack.encode(wanted))
                process.requests.close()
            printed = self._printed(process, paths)
        if self._is_stopping:
            raise PutOff
        if printed is None:
            return {"error": {"code": TOO_SLOW}}
        try:
            return orjson.loads(printed)
        except orjson.JSONDecodeError:
            return {}

    def stop(self) -> None:
        """End what runs; what it stored by then stays, and nothing more begins."""
        with self._lock:
            self._is_stopping = True
            for each in self._running:
                each.kill()

    def _printed(self, process: StartedProcess, paths: Sequence[Path]) -> bytes | None:
        """What it said; None where it took too long."""
        printed = bytearray()
        if _is_read(process.replies, self.least_seconds, printed):
            return bytes(printed)
        size_bytes = sum(map(_size_of, paths))
        if _is_read(process.replies, size_bytes / BYTES_A_SECOND, printed):
            return bytes(printed)
        return None

    @contextmanager
    def _started(self, claim: IO[bytes]) -> Generator[StartedProcess]:
        """Ended with all that it started when the block ends.  Raises: PutOff."""
        with started_process(self.module, 0, os.dup(claim.fileno()), asks=True) as process:
            with self._lock:
                if self._is_stopping:
                    raise PutOff
                self._running.append(process)
            try:
                yield process
            finally:
                with self._lock:
                    self._running.remove(process)

    @contextmanager
    def _claimed(self, feed_id: str) -> Generator[IO[bytes]]:
        """Raises: PutOff while an import of a server that was killed goes on."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / f"{feed_id}.lock"
        path.touch(mode=0o600)
        with path.open("ab") as lock:
            if not try_lock(lock):
                raise PutOff
            yield lock


def _is_read(stream: IO[bytes], seconds: float, into: bytearray) -> bool:
    """Whether a pipe ended within so many seconds; what came of it by then is added."""
    poll, end = select.poll(), time.monotonic() + seconds
    poll.register(stream, select.POLLIN)
    while poll.poll(max(0.0, end - time.monotonic()) * 1_000):
        piece = os.read(stream.fileno(), _PIECE_BYTES)
        if not piece:
            return True
        into += piece
    return False


def _size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; of what is gone or closed, none."""
    with suppress(OSError, FolderTrouble):
        if path.is_dir():
            return sum(stated.st_size for _, stated in files_beneath(path))
        return path.lstat().st_size
    return 0
