"""Copies of a database as it was before its tables changed."""

from __future__ import annotations

import shutil

from pdpp_kernel.errors import StorageUnavailable
from personal_server.settings import Settings
from personal_server.storage.sqlite.database import copy_database

BEFORE_MIGRATION = "before-migration"
KEPT_COPIES = 2


def copy_before_migration(settings: Settings) -> None:
    """Keep the database as it is before its tables change.  Raises: StorageUnavailable."""
    folder = settings.data_dir / BEFORE_MIGRATION
    folder.mkdir(exist_ok=True, mode=0o700)
    size_bytes = settings.database_path.stat().st_size
    if shutil.disk_usage(folder).free < 2 * size_bytes:
        raise StorageUnavailable(
            "The disk has no space to copy the database before the upgrade. Free "
            "some space and repeat the command."
        )
    numbers = sorted(int(path.stem) for path in folder.glob("*.sqlite3") if path.stem.isdecimal())
    target = folder / f"{numbers[-1] + 1 if numbers else 1}.sqlite3"
    copy_database(settings.database_path, target)
    for number in numbers[: -KEPT_COPIES + 1]:
        (folder / f"{number}.sqlite3").unlink(missing_ok=True)
