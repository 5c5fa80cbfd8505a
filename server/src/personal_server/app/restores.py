"""A backup restored into an empty data directory.

Source: docs/backup.md.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pdpp_kernel.system.own_folders import make_folders
from personal_server.app.backup_ledger import apply_ledger
from personal_server.app.backups import (
    RESTORING,
    BackupOrder,
    note_backup,
    opened_copy,
    plain_archive,
    scratch_folder,
    verify_backup,
)
from personal_server.app.configured_clients import client_tables
from personal_server.app.moves import move
from personal_server.app.stores import open_stores
from personal_server.configuration_file import (
    configuration_path,
    keep_values,
    read_configuration,
    write_configuration,
)
from personal_server.granting.audit import SERVER
from personal_server.granting.pauses import close_after_restore
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import (
    EventRow,
    IntrospectionClientRow,
    OwnerRow,
    PasskeyRow,
    SubscriptionRow,
)
from personal_server.storage.notice_rows import NoticeChannelRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationWriter,
)
from personal_server.storage.sqlite.foreign_schema import code_in, foreign_schema
from personal_server.upkeep.backups import (
    CONFIGURATION,
    DATABASE,
    BackupManifest,
    BackupRefused,
    fsync_folder,
    unpack,
)
from personal_server.upkeep.ledger import NAME as LEDGER
from personal_server.upkeep.ledger import Entry, add_to_ledger, read_ledger
from personal_server.upkeep.sealing import is_sealed

_PLAIN = re.compile(r"[A-Za-z0-9_+/-]+")
"""What an owner's id, a zone or a language is written with: no sign means anything in the file."""


class Restored(msgspec.Struct, frozen=True):
    """What came back.

    Shapes: `erased` and `ended` are what the ledger told, `waiting` the grants that are paused;
        `ledger` is whether there was one; `credentials` how many of each kind were in it, which
        came back if `is_proven`.
    """

    manifest: BackupManifest
    erased: int
    ended: int
    waiting: int
    ledger: bool
    credentials: Mapping[str, int]
    is_proven: bool


def restore_backup(
    settings: Settings,
    path: Path,
    identity: Path | None,
    ledger_path: Path | None,
    signer: str | None = None,
) -> Restored:
    """Restore into an empty data directory, and into an empty schema where the settings name one;
    nothing is written before the whole file is verified.

    Shapes: `signer` is who must have made it.  Without one anybody may have: what signs somebody
        in, or lets a program ask, is then left out.
    Raises: BackupRefused, LedgerDamaged, StorageUnavailable.
    """
    data_dir = settings.data_dir
    make_folders(data_dir, 0o700)
    if any(not each.name.startswith(RESTORING) for each in data_dir.iterdir()):
        raise BackupRefused(
            "The data directory is not empty, and a restore never replaces data.",
            next_step="Name another directory: PDPP_DATA_DIR=~/restored pdpp restore FILE",
        )
    if ledger_path is None and (path.parent / LEDGER).exists():
        ledger_path = path.parent / LEDGER
    ledger = {} if ledger_path is None else read_ledger(ledger_path)
    verified = verify_backup(path, identity, signer)
    with scratch_folder(data_dir, RESTORING) as scratch:
        files = scratch / "files"
        with plain_archive(path, identity) as archive:
            manifest = unpack(archive, files, verified.signer)
        _refuse_code(files / DATABASE)
        unpacked = replace(settings, data_dir=files, database_url=None)
        (files / DATABASE).rename(unpacked.database_path)
        clients = _clients_in(files)
        if not signer:
            _leave_out_clients(files)
        revived = _revive(unpacked, path, manifest, ledger, is_proven=bool(signer))
        restored = replace(
            revived,
            ledger=ledger_path is not None,
            credentials={**revived.credentials, "clients": clients},
        )
        _refuse_foreign_schema(unpacked.database_path, scratch / "empty.sqlite3")
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
    settings: Settings,
    path: Path,
    manifest: BackupManifest,
    ledger: dict[str, Entry],
    *,
    is_proven: bool,
) -> Restored:
    """Make a store of a backup that nobody can take for the one it was."""
    with open_stores(settings, serving=False) as stores:
        counts = stores.upkeep.counted()
        if counts.streams != manifest.streams or counts.grants != manifest.grants:
            raise BackupRefused(
                "The database of this backup does not contain what the backup says."
            )
        stores.upkeep.renew_epoch(stores.random_bytes(8).hex())
        stores.upkeep.keep_backup_schedule(None)  # the server it was made from may go on with it
        erased, ended = apply_ledger(stores, ledger)
        with stores.authorization.write() as writer:
            waiting = close_after_restore(writer, ended, SERVER, stores.clock())
            writer.delete(NoticeChannelRow)  # and tell its owner where they are told
            credentials = _credentials(writer)
            if not is_proven:
                _leave_out_credentials(writer)
        note_backup(stores, BackupOrder(path, "" if is_sealed(path) else None), manifest)
    return Restored(
        manifest,
        erased,
        len(ended),
        waiting,
        ledger=False,
        credentials=credentials,
        is_proven=is_proven,
    )


def _credentials(reader: AuthorizationReader) -> dict[str, int]:
    """How many there are of what signs somebody in, or lets a program ask."""
    passwords = [row for row in reader.rows(OwnerRow) if row.password_hash is not None]
    callers = reader.rows(IntrospectionClientRow, IntrospectionClientRow.ended_at_ns.equals(None))
    return {
        "passwords": len(passwords),
        "passkeys": len(reader.rows(PasskeyRow)),
        "resource_servers": len(callers),
        "subscriptions": len(reader.rows(SubscriptionRow)),
    }


def _leave_out_credentials(writer: AuthorizationWriter) -> None:
    writer.change(OwnerRow, [OwnerRow.password_hash.to(None)])
    writer.delete(PasskeyRow)
    writer.delete(IntrospectionClientRow)
    for calling in (SubscriptionRow, EventRow):  # where the server calls, by itself
        writer.delete(calling)


def _clients_in(files: Path) -> int:
    """How many clients the configuration sets up, which the consent page says of them.

    Raises: StorageUnavailable.
    """
    found = read_configuration(files)
    return 0 if found is None else len(client_tables(found))


def _leave_out_clients(files: Path) -> None:
    """Write the configuration anew, with its owner, time zone and language alone.

    Raises: BackupRefused, StorageUnavailable.
    """
    found = read_configuration(files)
    if found is None:
        return
    if not _PLAIN.fullmatch(found.subject_id):
        raise _tampered()
    kept = {"time_zone": found.time_zone, "language": found.language}
    configuration_path(files).unlink()
    write_configuration(files, found.subject_id)
    keep_values(files, {name: text for name, text in kept.items() if _PLAIN.fullmatch(text or "")})


def _refuse_code(database: Path) -> None:
    """Raises: BackupRefused."""
    with _looking():
        if code_in(database):
            raise _tampered()


def _refuse_foreign_schema(database: Path, empty: Path) -> None:
    """Raises: BackupRefused."""
    with opened_copy(empty):
        pass
    with _looking():
        if foreign_schema(database, empty):
            raise _tampered()


@contextmanager
def _looking() -> Generator[None]:
    """Raises: BackupRefused, where this is no database."""
    try:
        yield
    except ValueError:
        raise _tampered() from None


def _tampered() -> BackupRefused:
    return BackupRefused(
        "The database of this backup contains something that no server of ours writes.",
        next_step="Do not restore it: somebody changed it. Use another backup.",
    )
