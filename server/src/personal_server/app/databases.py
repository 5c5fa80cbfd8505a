"""The database of a server: the SQLite file in its data directory, or a schema of PostgreSQL."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from personal_server.app.early_copies import copy_before_migration
from personal_server.app.postgres_opening import open_postgres
from personal_server.app.server_database import ServerDatabase
from personal_server.settings import Settings
from personal_server.storage.sql.care.copy_mark import is_being_copied
from personal_server.storage.sql.care.whole_copy import DatabaseCopy
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.ownership import DataMismatch, OwnedStore, require_database


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
        before_migration=lambda _: copy_before_migration(settings),
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
