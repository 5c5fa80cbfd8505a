"""Backups of a data directory, made beside whoever works on it, and their return.

Source: docs/backup.md.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import StorageReadOnly
from pdpp_kernel.refused_writes import refusal_of
from pdpp_kernel.system.file_locks import try_lock
from pdpp_kernel.values import DAY_NANOSECONDS, instant_ns, render_instant
from personal_server.app.backup_ledger import keep_ledger
from personal_server.app.own_version import VERSION
from personal_server.app.stores import Stores
from personal_server.configuration_file import configuration_path
from personal_server.domain.stored import BackupProof, StoreCounts
from personal_server.settings import Settings
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.storage.sql.fixed_tables import BackupRow
from personal_server.storage.sql.records.blob_files import PREFIX, blob_path
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.backup_signatures import BackupSigner
from personal_server.upkeep.backups import (
    BLOBS,
    CONFIGURATION,
    DATABASE,
    BackupManifest,
    BackupRefused,
    BackupWriter,
    publish,
    render_manifest,
    unpack,
)
from personal_server.upkeep.scratch import is_alive
from personal_server.upkeep.sealing import is_sealed, require_recipient, seal, unseal

PROVEN_EVERY_NS = 7 * DAY_NANOSECONDS
SCRATCH, RESTORING = ".backup-", ".restoring-"
UNFINISHED = ".pdpp-unfinished"  # how names of what lies beside a backup in the making end
_MARGIN_BYTES = 16 * 1024 * 1024
_log = logging.getLogger(__name__)


def free_bytes_of(path: Path) -> int:
    """What may still be written on the disk of a path."""
    return shutil.disk_usage(path).free


class BackupOrder(msgspec.Struct, frozen=True):
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
            next_step=(
                "Name a new file in this folder; or let the server make a backup there "
                "every day: pdpp backup FOLDER --every 1d"
            ),
        )
    if target.exists():
        raise BackupRefused(
            f"The file {target.name} exists already, and a backup never replaces a file.",
            next_step="Name a new file.",
        )
    if not target.parent.is_dir():
        raise BackupRefused(
            "The folder for this file does not exist.",
            next_step="Connect its disk, create the folder, or name another.",
        )
    signer = backup_signer(stores, settings)
    remove_left(target.parent)
    with _scratch(settings, order) as scratch, _partial(target) as partial:
        archive = partial if order.recipient is None else scratch / "plain"
        manifest = _write_archive(stores, settings, signer, scratch, archive)
        if order.prove:
            _prove(stores, order.free_bytes(scratch), archive, manifest, scratch)
        if order.recipient is not None:
            with archive.open("rb") as plain, partial.open("wb") as sealed:
                seal(plain, sealed, order.recipient)
        publish(partial, target)
    try:
        note_backup(stores, order, manifest)
        keep_ledger(stores, settings)
    except (StorageReadOnly, OSError):
        if order.scheduled:  # one that is not known of would be made again and again
            target.unlink()
            raise
        _log.warning("a backup was made, but the full disk of the data could not note it")
    return manifest


def backup_signer(stores: Stores, settings: Settings) -> BackupSigner:
    """What this server signs its backups with; its key is made here where there is none yet.

    Raises: StorageUnavailable.
    """
    signer = BackupSigner(settings.data_dir, stores.random_bytes)
    try:
        signer.keep_key()
    except OSError as error:
        raise refusal_of(error) from error
    return signer


def note_backup(stores: Stores, order: BackupOrder, manifest: BackupManifest) -> None:
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
    stores: Stores, settings: Settings, signer: BackupSigner, scratch: Path, archive: Path
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
            VERSION,
            counts.epoch,
            counts.sequence,
            counts.grants,
            counts.streams,
            tuple(writer.files),
            tuple(vanished),
            tuple(damaged),
            signer=signer.name,
        )
        writer.close(render_manifest(manifest), signer.sign)
    copy.unlink()
    return manifest


def _counted(path: Path) -> StoreCounts:
    with opened_copy(path) as database:
        if not database.check():
            raise BackupRefused(
                "The database is damaged, so a backup of it would be incomplete.",
                next_step="Run `pdpp doctor --data` to find out what is damaged.",
            )
        return SqlUpkeepStore(database).counted()


@contextmanager
def opened_copy(path: Path) -> Generator[SqliteDatabase, None, None]:
    """A database that nobody else has open."""
    database = SqliteDatabase(path)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def scratch_folder(folder: Path, prefix: str) -> Generator[Path, None, None]:
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
def _scratch(settings: Settings, order: BackupOrder) -> Generator[Path, None, None]:
    """Where the copy of the database is made: beside the data.

    Where that disk has no room, it is made beside a backup that is in clear itself.
    """
    beside = order.target.parent
    database = settings.database_path
    needed = database.stat().st_size + _MARGIN_BYTES if database.exists() else 0
    if order.recipient is not None or order.free_bytes(settings.data_dir) >= needed:
        with scratch_folder(settings.data_dir, SCRATCH) as scratch:
            yield scratch
        return
    with _writing_to_target():
        scratch = Path(tempfile.mkdtemp(prefix=".copy-", suffix=UNFINISHED, dir=beside))
    with _claimed(scratch):
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _partial(target: Path) -> Generator[Path, None, None]:
    with _writing_to_target():
        descriptor, name = tempfile.mkstemp(
            prefix=f".{target.name}-", suffix=UNFINISHED, dir=target.parent
        )
        os.close(descriptor)
        with _claimed(Path(name)):
            try:
                yield Path(name)
            finally:
                Path(name).unlink(missing_ok=True)


@contextmanager
def _claimed(path: Path) -> Generator[None, None, None]:
    """While this process lives, nobody takes it for something that a killed one left."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: nothing is removed from it
            try_lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def remove_left(folder: Path) -> None:
    """Remove what killed processes left unfinished there, which holds records in clear."""
    for left in folder.glob(f".*{UNFINISHED}"):
        with suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if not try_lock(descriptor):
                    continue
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()
            finally:
                os.close(descriptor)


@contextmanager
def _writing_to_target() -> Generator[None, None, None]:
    """Raises: BackupRefused, which says what is wrong with the disk or the folder."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise BackupRefused(
                "The disk is full, so the backup was not made.",
                next_step="Free space on the disk of the backup, or name a folder on another disk.",
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise BackupRefused(
                "The server may not write to the folder of the backup.",
                next_step="Let the server's user write to this folder, or name another folder.",
            ) from error
        raise BackupRefused(
            "The backup cannot be written: the folder is gone, or its disk is failing.",
            next_step="Is the disk connected? Look at it, or name a folder on another disk.",
        ) from error


def _prove(
    stores: Stores, free_bytes: int, archive: Path, manifest: BackupManifest, scratch: Path
) -> None:
    """Restore it into a scratch folder and compare; the owner is told how it went."""
    now_ns = stores.clock()
    before = stores.upkeep.proof() or BackupProof(now_ns)
    needed = 2 * sum(file.size_bytes for file in manifest.files)
    if free_bytes < needed:
        stores.upkeep.keep_proof(replace(before, tried_at_ns=now_ns, skipped="no_space"))
        _log.warning("a backup was not tested by restoring it: less than twice its space is free")
        return
    with archive.open("rb") as file:
        found = unpack(file, scratch / "proof")
    counts = _counted(scratch / "proof" / DATABASE)
    if found != manifest or counts.streams != manifest.streams:
        raise BackupRefused(
            "The test restore of a backup gave other data than were written, so the "
            "backup was deleted."
        )
    stores.upkeep.keep_proof(BackupProof(now_ns, now_ns, manifest.records))


def verify_backup(path: Path, identity: Path | None, signer: str | None = None) -> BackupManifest:
    """Read a backup to its end; `signer` is who must have made it.  Raises: BackupRefused."""
    with plain_archive(path, identity) as archive:
        return unpack(archive, None, signer)


@contextmanager
def plain_archive(path: Path, identity: Path | None) -> Generator[IO[bytes], None, None]:
    """The archive of a backup, unsealed on the way if need be: it never lies about in clear."""
    if not is_sealed(path):
        with path.open("rb") as archive:
            yield archive
        return
    if identity is None:
        raise BackupRefused(
            "This backup is encrypted.", next_step="Name the file with its key: --identity FILE"
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
