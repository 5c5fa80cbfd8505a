"""Who serves a database file: one server, with as many processes as it likes."""

from __future__ import annotations

import os

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.refused_writes import refusal_of
from pdpp_kernel.system.own_folders import make_folders
from personal_server.settings import Settings
from personal_server.storage.sqlite.file_claims import DatabaseInUse, claim_file
from personal_server.upkeep.ownership import require_own_files


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
