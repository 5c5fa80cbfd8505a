"""A data directory that is not opened as a store: damaged pages, and a lost `config.toml`."""

from __future__ import annotations

from personal_server.app.databases import open_database
from personal_server.configuration_file import read_configuration, write_configuration
from personal_server.settings import Settings
from personal_server.storage.sql.care.faults import DamagedTable
from personal_server.storage.sql.care.upkeep import SqlUpkeepStore
from personal_server.storage.sqlite.damage import damaged_tables
from personal_server.upkeep.ownership import DataMismatch, require_own_files


def damage_of(settings: Settings) -> list[DamagedTable]:
    """Damaged pages, as the file shows them without being opened as a store.

    Raises: DataNotOwned, StorageUnavailable.
    """
    require_own_files(settings.data_dir)
    return [] if settings.database_url is not None else damaged_tables(settings.database_path)


def write_lost_configuration(settings: Settings) -> None:
    """Write the `config.toml` that a database has lost.

    Raises: DataMismatch, DataNotOwned, DatabaseTooNew, StorageUnavailable.
    """
    require_own_files(settings.data_dir)
    if read_configuration(settings.data_dir) is not None:
        raise DataMismatch(
            "A config.toml exists already.",
            next_step=(
                "If config.toml does not belong to the database beside it, move it away first."
            ),
        )
    known = "the owner of the earlier data"
    database = open_database(settings, serving=False, configured=known)
    try:
        owner = SqlUpkeepStore(database).owner()
    finally:
        database.close()
    if owner is None:
        raise DataMismatch(
            "The database names no owner; `pdpp serve` starts anew with this database."
        )
    write_configuration(settings.data_dir, owner)
