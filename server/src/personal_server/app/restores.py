"""A backup restored into an empty data directory.

Source: docs/backup.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from personal_server.app.backup_ledger import apply_ledger
from personal_server.app.backups import (
    RESTORING,
    BackupOrder,
    note_backup,
    plain_archive,
    scratch_folder,
)
from personal_server.app.moves import move
from personal_server.app.stores import open_stores
from personal_server.granting.audit import SERVER
from personal_server.granting.pauses import close_after_restore
from personal_server.settings import Settings
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
            "The data directory is not empty, and a restore never replaces data.",
            next_step="Name another directory: PDPP_DATA_DIR=~/restored pdpp restore FILE",
        )
    if ledger_path is None and (path.parent / LEDGER).exists():
        ledger_path = path.parent / LEDGER
    ledger = {} if ledger_path is None else read_ledger(ledger_path)
    with scratch_folder(data_dir, RESTORING) as scratch:
        files = scratch / "files"
        with plain_archive(path, identity) as archive:
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
            raise BackupRefused(
                "The database of this backup does not contain what the backup says."
            )
        stores.upkeep.renew_epoch(stores.random_bytes(8).hex())
        stores.upkeep.keep_backup_schedule(None)  # the server it was made from may go on with it
        erased, ended = apply_ledger(stores, ledger)
        with stores.authorization.write() as writer:
            waiting = close_after_restore(writer, ended, SERVER, stores.clock())
        note_backup(stores, BackupOrder(path, "" if is_sealed(path) else None), manifest)
    return Restored(manifest, erased, len(ended), waiting, ledger=False)
