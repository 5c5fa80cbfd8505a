"""The database of a server: the SQLite file in its data directory, or a schema of PostgreSQL."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.refused_writes import refusal_of
from pdpp_kernel.system.own_folders import make_folders
from personal_server.app.postgres_opening import open_postgres
from personal_server.app.server_database import ServerDatabase
from personal_server.settings import Settings
from personal_server.storage.sql.care.copy_mark import is_being_copied
from personal_server.storage.sql.care.whole_copy import DatabaseCopy
from personal_server.storage.sqlite.database import SqliteDatabase, copy_database
from personal_server.storage.sqlite.file_claims import DatabaseInUse, claim_file
from personal_server.upkeep.ownership import (
    DataMismatch,
    OwnedStore,
    require_database,
    require_own_files,
)

BEFORE_MIGRATION = "before-migration"
KEPT_COPIES = 2


def claim_database(settings: Settings) -> int | None:
    """Claim a file for several processes that serve it together; a server of databases has none.

    Shapes: a descriptor, which whoever has it or inherits it keeps the claim with.
    Raises: DatabaseInUse, DataNotOwned, StorageReadOnly, StorageUnavailable.
    """
    if settings.database_url is not None:
        return None
    require_own_files(settings.data_dir)
    try:
        make_folders(settings.data_dir, 0o700)
    except OSError as error:
        raise refusal_of(error) from error
    return claim_file(settings.database_path)


def is_served(settings: Settings) -> bool:
    """Whether a server works on the file of these settings."""
    if not settings.database_path.exists():
        return False
    try:
        claim = claim_database(settings)
    except DatabaseInUse:
        return True
    except StorageUnavailable:
        return False
    if claim is not None:
        os.close(claim)
    return False


def open_database(
    settings: Settings, *, serving: bool, configured: str | None, claim: int | None = None
) -> ServerDatabase:
    """Open what the settings name, and migrate it if need be.

    Shapes: `configured` as in `upkeep.ownership.settle_owner`; `claim` is one that this process
        inherited.
    Raises: InvalidSetting, DatabaseInUse for a second server of a file, DatabaseTooNew,
        DatabaseTooOld, DataMismatch, StorageUnavailable.
    """
    if settings.database_url is not None:
        return open_postgres(settings.database_url, settings, serving=serving)
    require_database(settings.database_path, configured)
    return SqliteDatabase(
        settings.database_path,
        serving=serving,
        claim=claim,
        before_migration=lambda _: _copy_before_migration(settings),
    )


def copy_into_file(database: ServerDatabase, path: Path) -> None:
    """Write one state of it into a new SQLite file, while others read and write.

    Raises: StorageUnavailable.
    """
    if isinstance(database, SqliteDatabase):
        database.copy_to(path)
        return
    with closing(SqliteDatabase(path)) as target, database.read() as session:
        copy = DatabaseCopy(session, target)
        copy.run()
        copy.finish()


def require_filled(store: OwnedStore, settings: Settings, configured: str | None) -> None:
    """Refuse an empty schema beside a configuration that knows an owner.  Raises: DataMismatch."""
    if settings.database_url is not None and configured is not None and store.owner() is None:
        raise DataMismatch(
            (
                "config.toml names an owner, but the schema "
                f"{settings.database_schema} of the database is empty."
            ),
            next_step=(
                "Name the right database and schema (PDPP_DATABASE_URL, "
                "PDPP_DATABASE_SCHEMA), or restore the database. To start anew, name "
                "an empty data directory."
            ),
        )


def require_whole(database: ServerDatabase) -> None:
    """Refuse what a move has not finished.  Raises: DataMismatch."""
    with database.read() as session:
        if is_being_copied(session):
            raise DataMismatch(
                "A move into this database began and did not finish.",
                next_step=(
                    "Repeat the same `pdpp move --to …` where you started it; the move continues."
                ),
            )


def _copy_before_migration(settings: Settings) -> None:
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
