"""Backups by schedule, and which of them are kept.

Source: docs/backup.md.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from personal_server.app.early_copies import BEFORE_MIGRATION
from personal_server.app.stores import Stores
from personal_server.domain.stored import BackupSchedule
from personal_server.settings import Settings
from personal_server.upkeep.backups import BackupRefused
from personal_server.upkeep.sealing import require_recipient


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

    Makes the folder, which the schedule itself never does: a folder that is missing then is one on
    a disk that is not connected.
    Raises: BackupRefused, where it could not be kept to.
    """
    if settings.backup_dir is not None:
        raise BackupRefused(
            "PDPP_BACKUP_DIR already sets the scheduled backups.",
            next_step=(
                "Change PDPP_BACKUP_DIR where you start the server, or unset it and "
                "repeat this command."
            ),
        )
    if schedule is not None:
        if schedule.recipient is not None:
            require_recipient(schedule.recipient)
        folder = Path(schedule.folder)
        if folder.resolve().is_relative_to(settings.data_dir.resolve()):
            raise BackupRefused(
                (
                    "This folder is inside the data directory, so the backups would be "
                    "lost together with the data."
                ),
                next_step=(
                    "Name a folder outside of the data directory, preferably on another disk."
                ),
            )
        _make(folder)
    stores.upkeep.keep_backup_schedule(schedule)
    return schedule


def _make(folder: Path) -> None:
    """The folder, for the owner alone, where the one around it exists.  Raises: BackupRefused."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        raise BackupRefused(
            "The folder around this folder does not exist either.",
            next_step="If it is on another disk, connect that disk. Else create it: mkdir -p",
        ) from None
    except OSError:
        raise _unwritable() from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable()


def _unwritable() -> BackupRefused:
    return BackupRefused(
        "The server cannot write to this folder.",
        next_step="Name a folder of yours, preferably on another disk.",
    )


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
