"""Backups of a data directory, made beside whoever works on it, and their return.

Source: docs/backup.md.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO

from pdpp_kernel.errors import ConnectionNotFound
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS, instant_ns, render_instant
from personal_server.app.databases import BEFORE_MIGRATION
from personal_server.app.moves import move
from personal_server.app.stores import Stores, open_stores
from personal_server.configuration_file import configuration_path
from personal_server.granting.audit import SERVER
from personal_server.granting.pauses import EndedAccess, close_after_restore
from personal_server.granting.revocations import end_access
from personal_server.settings import Settings
from personal_server.storage.ports import BackupProof, BackupSchedule, StoreCounts
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.storage.sql.fixed_tables import BackupRow
from personal_server.storage.sql.records.blobs import PREFIX, blob_path
from personal_server.storage.sql.records.writes import key_digest
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.backups import (
    BLOBS,
    CONFIGURATION,
    DATABASE,
    BackupManifest,
    BackupRefused,
    BackupWriter,
    fsync_folder,
    publish,
    render_manifest,
    unpack,
)
from personal_server.upkeep.ledger import NAME as LEDGER
from personal_server.upkeep.ledger import Entry, add_to_ledger, read_ledger
from personal_server.upkeep.scratch import is_alive
from personal_server.upkeep.sealing import is_sealed, require_recipient, seal, unseal
from personal_server.web.health import Fault

PROVEN_EVERY_NS = 7 * DAY_NANOSECONDS
SCRATCH, RESTORING = ".backup-", ".restoring-"
_log = logging.getLogger(__name__)


# Making one -----------------------------------------------------------------------------------
def free_bytes_of(path: Path) -> int:
    """What may still be written on the disk of a path."""
    return shutil.disk_usage(path).free


@dataclass(frozen=True, slots=True)
class BackupOrder:
    """A backup that is asked for.

    Shapes: `recipient` is whom it is sealed for; `prove` restores it before it is sealed, if
        `free_bytes` of the disk of the data are enough for that.
    """

    target: Path
    recipient: str | None = None
    scheduled: bool = False
    prove: bool = False
    free_bytes: Callable[[Path], int] = free_bytes_of


def make_backup(stores: Stores, settings: Settings, order: BackupOrder) -> BackupManifest:
    """Make one file, while others read and write.

    Raises: BackupRefused, StorageUnavailable.
    """
    target = order.target
    if order.recipient is not None:
        require_recipient(order.recipient)
    if target.is_dir():
        raise BackupRefused(
            f"{target.name} is a folder.",
            next_step="Name a new file in it; or let the server make one a day there:"
            " pdpp backup FOLDER --every 1d",
        )
    if target.exists():
        raise BackupRefused(
            f"{target.name} is there already, and no backup replaces a file.",
            next_step="Name a new file.",
        )
    if not target.parent.is_dir():
        raise BackupRefused(
            "The folder of this file is not there.", next_step="Make it, or name another."
        )
    with _scratch(settings.data_dir, SCRATCH) as scratch, _partial(target) as partial:
        archive = partial if order.recipient is None else scratch / "plain"
        manifest = _write_archive(stores, settings, scratch, archive)
        if order.prove:
            _prove(stores, order.free_bytes(settings.data_dir), archive, manifest, scratch)
        if order.recipient is not None:
            with archive.open("rb") as plain, partial.open("wb") as sealed:
                seal(plain, sealed, order.recipient)
        publish(partial, target)
    _note(stores, order, manifest)
    keep_ledger(stores, settings)
    return manifest


def _note(stores: Stores, order: BackupOrder, manifest: BackupManifest) -> None:
    """Let the store know of a backup that holds what it held."""
    stores.upkeep.keep_backup(
        BackupRow(
            backup_id=manifest.backup_id,
            path=str(order.target.resolve()),
            made_at=instant_ns(manifest.made_at) or 0,
            sequence=manifest.sequence,
            size_bytes=order.target.stat().st_size,
            sealed=order.recipient is not None,
            scheduled=order.scheduled,
        )
    )


def _write_archive(
    stores: Stores, settings: Settings, scratch: Path, archive: Path
) -> BackupManifest:
    copy = scratch / DATABASE
    stores.copy_database(copy)
    counts = _counted(copy)
    vanished: list[str] = []
    damaged: list[str] = []
    with archive.open("wb") as out:
        writer = BackupWriter(out)
        with copy.open("rb") as database:
            writer.add(DATABASE, database)
        with configuration_path(settings.data_dir).open("rb") as configuration:
            writer.add(CONFIGURATION, configuration)
        for blob_id in counts.blob_ids:
            name = BLOBS + blob_id.removeprefix(PREFIX)
            try:
                content = blob_path(settings.data_dir / "blobs", blob_id).open("rb")
            except FileNotFoundError:
                vanished.append(name)
                continue
            with content:
                if writer.add(name, content).sha256 != name.removeprefix(BLOBS):
                    damaged.append(name)
        manifest = BackupManifest(
            f"bak_{stores.random_bytes(9).hex()}",
            render_instant(stores.clock()),
            version("pdpp-personal-server"),
            counts.epoch,
            counts.sequence,
            counts.grants,
            counts.streams,
            tuple(writer.files),
            tuple(vanished),
            tuple(damaged),
        )
        writer.close(render_manifest(manifest))
    copy.unlink()
    return manifest


def _counted(path: Path) -> StoreCounts:
    with _opened(path) as database:
        if not database.check():
            raise BackupRefused(
                "The database is damaged, so that no backup of it can be whole.",
                next_step="pdpp doctor --data names what is damaged.",
            )
        return SqlUpkeepStore(database).counted()


@contextmanager
def _opened(path: Path) -> Generator[SqliteDatabase, None, None]:
    database = SqliteDatabase(path)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def _scratch(folder: Path, prefix: str) -> Generator[Path, None, None]:
    """A private folder beside the data; those that a killed process left go with it."""
    for left in folder.glob(f"{prefix}*"):
        if not is_alive(left.name.removeprefix(prefix).partition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=folder))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


@contextmanager
def _partial(target: Path) -> Generator[Path, None, None]:
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}-", dir=target.parent)
    except OSError:
        raise BackupRefused("The backup cannot be written where you named it.") from None
    os.close(descriptor)
    try:
        yield Path(name)
    except OSError as error:
        raise BackupRefused("The backup cannot be written: the disk is full or failing.") from error
    finally:
        Path(name).unlink(missing_ok=True)


# Proving one ----------------------------------------------------------------------------------
def _prove(
    stores: Stores, free_bytes: int, archive: Path, manifest: BackupManifest, scratch: Path
) -> None:
    """Restore it into a scratch folder and compare; the owner is told how it went."""
    now_ns = stores.clock()
    before = stores.upkeep.proof() or BackupProof(now_ns)
    needed = 2 * sum(file.size_bytes for file in manifest.files)
    if free_bytes < needed:
        stores.upkeep.keep_proof(replace(before, tried_at_ns=now_ns, skipped="no_space"))
        _log.warning("a backup was not proven: less than twice its space is free")
        return
    with archive.open("rb") as file:
        found = unpack(file, scratch / "proof")
    counts = _counted(scratch / "proof" / DATABASE)
    if found != manifest or counts.streams != manifest.streams:
        raise BackupRefused("A backup did not come back as it was written; it was not kept.")
    stores.upkeep.keep_proof(BackupProof(now_ns, now_ns, manifest.records))


def verify_backup(path: Path, identity: Path | None) -> BackupManifest:
    """Read a backup to its end.  Raises: BackupRefused."""
    with _plain(path, identity) as archive:
        return unpack(archive, None)


@contextmanager
def _plain(path: Path, identity: Path | None) -> Generator[IO[bytes], None, None]:
    """The archive of a backup, unsealed on the way if need be: it never lies about in clear."""
    if not is_sealed(path):
        with path.open("rb") as archive:
            yield archive
        return
    if identity is None:
        raise BackupRefused(
            "This backup is sealed.", next_step="Name the file of its key: --identity FILE"
        )
    read_end, write_end = os.pipe()
    refusals: list[BackupRefused] = []

    def pour() -> None:
        with path.open("rb") as sealed, os.fdopen(write_end, "wb", buffering=0) as out:
            try:
                unseal(sealed, out, identity)
            except BackupRefused as refusal:
                refusals.append(refusal)

    pouring = threading.Thread(target=pour)
    pouring.start()
    try:
        with os.fdopen(read_end, "rb") as archive:
            yield archive
            while archive.read(1 << 20):
                pass  # the end of a sealed file proves that nothing was cut off
    finally:
        pouring.join()
        if refusals:
            raise refusals[0] from None


# By schedule ----------------------------------------------------------------------------------
def schedule_of(stores: Stores, settings: Settings) -> BackupSchedule | None:
    """What is backed up by schedule: as the environment says, else as the owner's command said."""
    if settings.backup_dir is None:
        return stores.upkeep.backup_schedule()
    return BackupSchedule(
        str(settings.backup_dir),
        settings.backup_every_hours,
        settings.backup_keep,
        settings.backup_recipient,
    )


def set_schedule(
    stores: Stores, settings: Settings, schedule: BackupSchedule | None
) -> BackupSchedule | None:
    """Back up by this schedule from now on, or by none; the running server sees it by itself.

    Raises: BackupRefused, where it could not be kept to.
    """
    if settings.backup_dir is not None:
        raise BackupRefused(
            "PDPP_BACKUP_DIR says what is backed up by schedule.",
            next_step="Change it where the server is started, or unset it and repeat this.",
        )
    if schedule is not None:
        if schedule.recipient is not None:
            require_recipient(schedule.recipient)
        folder = Path(schedule.folder)
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise BackupRefused(
                "There is no such folder, or nothing can be written there.",
                next_step="Name a folder that is there, best on another disk.",
            )
        if folder.resolve().is_relative_to(settings.data_dir.resolve()):
            raise BackupRefused(
                "The folder lies in the data directory and would be lost with it.",
                next_step="Name one elsewhere, best on another disk.",
            )
    stores.upkeep.keep_backup_schedule(schedule)
    return schedule


@dataclass(frozen=True, slots=True)
class ScheduledBackups:
    """Backups that the running server makes by itself."""

    stores: Stores
    settings: Settings
    free_bytes: Callable[[Path], int] = free_bytes_of

    def make_if_due(self) -> None:
        """Make one if the newest is old enough, and let the oldest go.  Raises: BackupRefused."""
        schedule = schedule_of(self.stores, self.settings)
        if schedule is None:
            return
        now_ns = self.stores.clock()
        kept = [row for row in self.stores.upkeep.backups() if row.scheduled]
        if kept and kept[0].made_at <= now_ns < next_due_ns(kept[0].made_at, schedule):
            return
        order = BackupOrder(
            Path(schedule.folder) / _name(now_ns, schedule),
            schedule.recipient,
            scheduled=True,
            prove=self._is_proof_due(now_ns),
            free_bytes=self.free_bytes,
        )
        make_backup(self.stores, self.settings, order)
        for row in kept[max(schedule.keep - 1, 0) :]:
            Path(row.path).unlink(missing_ok=True)
            self.stores.upkeep.forget_backup(row.backup_id)

    def faults(self) -> Iterator[Fault]:
        """That the weekly proof was left out."""
        proof = self.stores.upkeep.proof()
        if proof is not None and proof.skipped:
            yield Fault(
                "backup",
                "backup_not_proven",
                proof.tried_at_ns,
                "A backup was made but not restored to prove it: less than twice its space is free"
                " on the disk of the data. Free some; it is tried again with the next one.",
            )

    def _is_proof_due(self, now_ns: int) -> bool:
        proof = self.stores.upkeep.proof()
        proven_ns = None if proof is None else proof.proven_at_ns
        return proven_ns is None or not 0 <= now_ns - proven_ns < PROVEN_EVERY_NS


def next_due_ns(made_at_ns: int, schedule: BackupSchedule) -> int:
    """When the backup after one is due."""
    return made_at_ns + schedule.every_hours * 3_600 * NANOSECONDS


def _name(now_ns: int, schedule: BackupSchedule) -> str:
    at = datetime.fromtimestamp(now_ns // NANOSECONDS, UTC)
    ending = ".pdpp.age" if schedule.recipient else ".pdpp"
    return f"backup-{at:%Y%m%dT%H%M%SZ}{ending}"


def kept_backups(stores: Stores, before_ns: int | None = None) -> tuple[str, ...]:
    """The names of the backups that are still where they were put, and of copies beside the data
    that upgrades made; with `before_ns` those made before that moment.
    """
    rows, until_ns = stores.upkeep.backups(), math.inf if before_ns is None else before_ns
    newest = {row.path: row.made_at for row in sorted(rows, key=lambda row: row.made_at)}
    made = [
        Path(path).name
        for path, made_at_ns in reversed(newest.items())
        if made_at_ns < until_ns and Path(path).exists()
    ]
    copies = sorted((stores.data_dir / BEFORE_MIGRATION).glob("*.sqlite3"))
    early = [path.name for path in copies if path.stat().st_mtime_ns < until_ns]
    return (*made, *(f"{BEFORE_MIGRATION}/{name}" for name in early))


# The ledger -----------------------------------------------------------------------------------
def keep_ledger(stores: Stores, settings: Settings) -> None:
    """Bring the ledger beside the data, and beside scheduled backups, up to date."""
    entries = stores.upkeep.ledger_entries(stores.configuration.subject_id)
    schedule = schedule_of(stores, settings)
    folders = [settings.data_dir] + ([Path(schedule.folder)] if schedule is not None else [])
    for folder in folders:
        if folder.is_dir():
            add_to_ledger(folder / LEDGER, entries)


class LedgerKeeper:
    """Keeps the ledger, and reads nothing but counts while nothing is erased or ended."""

    def __init__(self, stores: Stores, settings: Settings) -> None:
        self._stores = stores
        self._settings = settings
        self._size: tuple[int, ...] | None = None

    def keep(self) -> None:
        """Write what is new."""
        size = self._stores.upkeep.ledger_size()
        if size != self._size:
            keep_ledger(self._stores, self._settings)
            self._size = size


def apply_ledger(stores: Stores, ledger: dict[str, Entry]) -> tuple[int, list[EndedAccess]]:
    """Erase what the ledger says was erased, and this store does not know of.

    Shapes: how many erasures that were, and what access was ended without its knowledge.
    """
    subject_id = stores.configuration.subject_id
    known = {str(each["id"]) for each in stores.upkeep.ledger_entries(subject_id)}
    unknown = [entry for name, entry in ledger.items() if name not in known]
    erasures = [entry for entry in unknown if entry["kind"] == "erasure"]
    if erasures:  # a disk that takes no writes is no hindrance where nothing is to be erased
        _erase(stores, erasures)
        stores.upkeep.keep_erasures(subject_id, erasures)
    ended = [entry for entry in unknown if entry["kind"] == "ended"]
    return len(erasures), [EndedAccess(e["id"], e["reason"], e["at_ns"]) for e in ended]


def catch_up_with_ledger(stores: Stores, settings: Settings) -> None:
    """A copy of the database that was put back by hand is older than the ledger beside it."""
    erased, ended = apply_ledger(stores, read_ledger(settings.data_dir / LEDGER))
    if erased or ended:
        _log.warning(
            "the database is older than %s beside it: %d erasures and %d ends were made again",
            LEDGER,
            erased,
            len(ended),
        )
        with stores.authorization.write() as writer:
            for each in ended:
                end_access(writer, each.held_id, each.reason, SERVER, each.at_ns)


def _erase(stores: Stores, erasures: Iterable[Entry]) -> None:
    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in erasures:
        connection_id, stream = entry["connection_id"], entry["stream"]
        with suppress(ConnectionNotFound):
            if stream is None:
                stores.records.erase_connection(connection_id, entry["at_ns"])
            elif entry["key_digest"] is None:
                stores.records.delete_stream(connection_id, stream, entry["at_ns"])
            else:
                keys[connection_id, stream].add(entry["key_digest"])
    for (connection_id, stream), digests in keys.items():
        for key in _keys_with(stores, connection_id, stream, digests):
            with suppress(ConnectionNotFound):
                stores.records.delete_record(connection_id, stream, key, stores.clock())


def _keys_with(stores: Stores, connection_id: str, stream: str, digests: set[str]) -> list[str]:
    subject_id = stores.configuration.subject_id
    with stores.records.snapshot(None) as snapshot:
        rows = snapshot.export(connection_id, stream)
        return [row.key for row in rows if key_digest(subject_id, row.key) in digests]


# Restoring ------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Restored:
    """What came back.

    Shapes: `erased` and `ended` are what the ledger told, `waiting` the grants that are paused;
        `ledger` is whether there was one.
    """

    manifest: BackupManifest
    erased: int
    ended: int
    waiting: int
    ledger: bool


def restore_backup(
    settings: Settings, path: Path, identity: Path | None, ledger_path: Path | None
) -> Restored:
    """Restore into an empty data directory, and into an empty schema where the settings name one;
    nothing is in place before all of it is whole.

    Raises: BackupRefused, LedgerDamaged, StorageUnavailable.
    """
    data_dir = settings.data_dir
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(not each.name.startswith(RESTORING) for each in data_dir.iterdir()):
        raise BackupRefused(
            "The data directory is not empty, and nothing is ever restored over data.",
            next_step="Name another: PDPP_DATA_DIR=~/restored pdpp restore FILE",
        )
    if ledger_path is None and (path.parent / LEDGER).exists():
        ledger_path = path.parent / LEDGER
    ledger = {} if ledger_path is None else read_ledger(ledger_path)
    with _scratch(data_dir, RESTORING) as scratch:
        files = scratch / "files"
        with _plain(path, identity) as archive:
            manifest = unpack(archive, files)
        unpacked = replace(settings, data_dir=files, database_url=None)
        (files / DATABASE).rename(unpacked.database_path)
        restored = replace(
            _revive(unpacked, path, manifest, ledger), ledger=ledger_path is not None
        )
        add_to_ledger(files / LEDGER, ledger.values())
        if settings.database_url is not None:
            move(unpacked, settings)
            return restored
        for name in ("blobs", LEDGER, settings.database_path.name, CONFIGURATION):
            if (files / name).exists():  # the configuration last: with it everything is there
                (files / name).rename(data_dir / name)
                fsync_folder(data_dir)
    return restored


def _revive(
    settings: Settings, path: Path, manifest: BackupManifest, ledger: dict[str, Entry]
) -> Restored:
    """Make a store of a backup that nobody can take for the one it was."""
    with open_stores(settings, serving=False) as stores:
        counts = stores.upkeep.counted()
        if counts.streams != manifest.streams or counts.grants != manifest.grants:
            raise BackupRefused("The database of this backup does not hold what it should.")
        stores.upkeep.renew_epoch(stores.random_bytes(8).hex())
        stores.upkeep.keep_backup_schedule(None)  # the server it was made from may go on with it
        erased, ended = apply_ledger(stores, ledger)
        with stores.authorization.write() as writer:
            waiting = close_after_restore(writer, ended, SERVER, stores.clock())
        _note(stores, BackupOrder(path, "" if is_sealed(path) else None), manifest)
    return Restored(manifest, erased, len(ended), waiting, ledger=False)
