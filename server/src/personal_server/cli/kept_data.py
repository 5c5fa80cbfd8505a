"""What is kept on this machine, for commands that ask for it: asking makes nothing.

Rule: a mistyped directory stays as it is, so that `pdpp restore` still takes it.  Commands that
list show an empty store, which is gone with them; what an empty store would answer wrongly (its
log is unbroken, its key signs nothing, its copy takes the place of a good one) is refused.
Source: docs/contract/authorization-server.md 14.3.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from msgspec.structs import replace

from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import tell_nothing_kept
from personal_server.app.owner_store import OwnerStore, open_owner_store
from personal_server.app.stores import Stores, open_stores
from personal_server.cli.server_settings import settings_or_exit
from personal_server.configuration_file import read_configuration
from personal_server.settings import Settings
from personal_server.upkeep.logs import ChainedLogs
from personal_server.upkeep.ownership import require_database, require_own_files


def keeps_data(settings: Settings) -> bool:
    """Whether a server was ever used with these settings.

    Raises: DataNotOwned, StorageUnavailable, where the directory is not ours to look into;
        DataMismatch, where it lost its database.
    """
    require_own_files(settings.data_dir)
    if settings.database_url is not None or settings.database_path.exists():
        return True
    configuration = read_configuration(settings.data_dir)
    require_database(settings.database_path, configuration and configuration.subject_id)
    return False


def require_kept(settings: Settings) -> None:
    """Refuse a directory in which nothing is kept.

    Raises: CommandError (`not_found`); as `keeps_data`.
    """
    if not keeps_data(settings):
        raise CommandError(
            "not_found",
            "There is no database in this data directory.",
            "Set PDPP_DATA_DIR to the right directory.",
        )


def settings_of_kept() -> Settings:
    """The settings, where something is kept.  Raises: as `require_kept`."""
    settings = settings_or_exit()
    require_kept(settings)
    return settings


@contextmanager
def kept_or_empty(settings: Settings) -> Generator[tuple[Settings, bool], None, None]:
    """The settings and true where something is kept, else those of an empty store and false.

    Raises: as `keeps_data`.
    """
    if keeps_data(settings):
        yield settings, True
        return
    with tempfile.TemporaryDirectory(prefix="pdpp-empty-") as folder:
        yield replace(settings, data_dir=Path(folder)), False


@contextmanager
def settings_to_read(*, says_so: bool = True) -> Generator[Settings, None, None]:
    """The settings for a command that lists; where nothing is kept, those of an empty store.

    Shapes: `says_so` says that nothing is kept, where the command does not say so itself.
    Raises: as `keeps_data`.
    """
    settings = settings_or_exit()
    with kept_or_empty(settings) as (read, is_kept):
        if says_so and not is_kept:
            tell_nothing_kept(settings.data_dir)
        yield read


@contextmanager
def open_store() -> Generator[OwnerStore, None, None]:
    """Grants, disclosures and records, for a command of the owner on what there is."""
    with settings_to_read() as settings, open_owner_store(settings) as store:
        yield store


def open_existing_store() -> AbstractContextManager[OwnerStore]:
    """The same, for a command that writes a copy of them.  Raises: as `require_kept`."""
    return open_owner_store(settings_of_kept())


@contextmanager
def open_kept_stores() -> Generator[Stores, None, None]:
    """All stores, for a command on accounts and feeds that there are."""
    with settings_to_read() as settings, open_stores(settings, serving=False) as stores:
        yield stores


@contextmanager
def open_logs() -> Generator[ChainedLogs, None, None]:
    """The logs as chains.  Raises: CommandError (`not_found`)."""
    with open_stores(settings_of_kept(), serving=False) as stores:
        yield stores.logs
