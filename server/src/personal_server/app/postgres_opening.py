"""How the program opens PostgreSQL, where its extra is installed."""

from __future__ import annotations

from pdpp_kernel.refused_writes import refusal_of
from pdpp_kernel.system.own_folders import make_folders
from pdpp_mcp_server.settings import InvalidSetting
from personal_server.app.server_database import ServerDatabase
from personal_server.settings import Settings


def open_postgres(url: str, settings: Settings, *, serving: bool) -> ServerDatabase:
    """The database of that address, as a server or a command opens it.

    Raises: InvalidSetting, where the extra is not installed; StorageUnavailable.
    """
    try:
        # an extra, and half a second where nobody asks for it
        from personal_server.storage.postgres.database import PostgresDatabase  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InvalidSetting(
            "A database of PostgreSQL needs the extra `postgresql`: install"
            " 'pdpp-personal-server[postgresql]'."
        ) from None
    try:
        make_folders(settings.data_dir, 0o700)
    except OSError as error:
        raise refusal_of(error) from error
    return PostgresDatabase(
        url,
        settings.data_dir,
        settings.database_schema,
        listen_url=settings.database_listen_url,
        serving=serving,
    )
