"""A pytest plugin: whatever opens a SQLite file of its own works on a schema of PostgreSQL instead.

`PDPP_TEST_DATABASE=postgresql` loads it.  The schema stands for the path of the file, so that what
is closed and opened again is there; when a module is done, everything in it is searched for secrets
(`tests.secrecy`) and it is dropped.  Tests of files themselves say `of_files` and why; run the
others with `-m "not of_files"`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

from personal_server.app import stores
from personal_server.app.server_database import ServerDatabase
from personal_server.settings import Settings
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sqlite import database as sqlite
from server.tests.app.http_server import served
from tests.postgresql import server
from tests.secrecy.plugin import WATCH

_OPENED: set[str] = set()
_open_database = stores.open_database


def schema_of(path: Path) -> str:
    """The schema that stands for a file."""
    name = f"file_{hashlib.sha256(str(path).encode()).hexdigest()[:20]}"
    _OPENED.add(name)
    return name


def open_database(
    settings: Settings, *, serving: bool, configured: str | None, claim: int | None = None
) -> ServerDatabase:
    """As a server with `PDPP_DATABASE_URL` does."""
    if settings.database_url is None:
        schema = schema_of(settings.database_path)
        settings = replace(settings, database_url=server().url(), database_schema=schema)
    return _open_database(settings, serving=serving, configured=configured, claim=claim)


def environ_of(data_dir: Path) -> dict[str, str]:
    """What makes a process of its own work on the schema that stands for the file there."""
    schema = schema_of(Settings(data_dir=data_dir).database_path)
    return {"PDPP_DATABASE_URL": server().url(), "PDPP_DATABASE_SCHEMA": schema}


class SchemaOfFile(PostgresDatabase):
    """Opened as a file is."""

    def __init__(
        self, path: Path, steps: Any = None, *, serving: bool = False, **more: Any
    ) -> None:
        del serving
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        super().__init__(server().url(), path.parent, schema_of(path), steps, **more)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_of_schemas() -> Generator[None, None, None]:
    """Search and drop what the tests of a module made."""
    yield
    with psycopg.connect(server().url(), autocommit=True) as connection:
        while _OPENED:
            name = _OPENED.pop()
            tables = connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname !~ '^[hw][0-9]+$'"
                " AND relnamespace = to_regnamespace(%s)",
                (name,),
            ).fetchall()
            for (table,) in tables:
                everything = f'SELECT * FROM "{name}"."{table}"'  # noqa: S608
                for line in connection.execute(everything.encode()):
                    WATCH.hear(repr(line), f"{table} of PostgreSQL")
            connection.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE'.encode())


stores.open_database = open_database
served.environ_of = environ_of
databases_of_files: Any = sqlite
databases_of_files.SqliteDatabase = SchemaOfFile
