"""New databases in files for tests that are not about how they are made.

A new file takes all released steps, 40 ms of processor time; hundreds of tests begin with one.  So
it is made once in a process, and its bytes are where a test begins.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from personal_server.settings import Settings
from personal_server.storage.sqlite.database import SqliteDatabase


@cache
def _empty() -> bytes:
    """A file that has taken every step and holds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "empty.db")
        with closing(SqliteDatabase(path)):
            pass
        assert [each.name for each in path.parent.iterdir() if each.stat().st_size] == [path.name]
        return path.read_bytes()


def begin_database(settings: Settings) -> None:
    """Make the new file of a server that has one, for what opens it by itself."""
    if settings.database_url is None:
        _begin_file(settings.database_path)


def _begin_file(path: Path) -> None:
    """Make a new file where there is none, and where tests use files."""
    is_file = os.environ.get("PDPP_TEST_DATABASE") != "postgresql"  # noqa: TID251 (a setting of tests)
    if is_file and not path.exists():
        path.parent.mkdir(0o700, parents=True, exist_ok=True)
        path.touch(0o600)
        path.write_bytes(_empty())


def new_file(path: Path, **options: Any) -> SqliteDatabase:
    """The database in a file, which is a new one if there is none."""
    _begin_file(path)
    return SqliteDatabase(path, **options)
