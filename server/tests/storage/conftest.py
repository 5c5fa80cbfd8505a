"""Every test of the storage contract runs on every store."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.records import sign_blocks
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.worlds import furnish
from tests.new_files import new_file
from tests.oracle.memory import MemoryStore
from tests.postgresql import postgres_store


@contextmanager
def sqlite_store(directory: Path) -> Generator[SqlRecordStore, None, None]:
    database = new_file(directory / "data" / "records.db")
    try:
        yield SqlRecordStore(database, "owner", directory / "data" / "blobs")
    finally:
        database.close()


def database_of(store: SqlRecordStore) -> SqliteDatabase:
    """Of a store in a file."""
    return cast(Any, store)._database


BY_DATABASE = pytest.mark.parametrize(
    "opened", [sqlite_store, postgres_store], ids=["sqlite", "postgres"]
)
"""For tests of what is peculiar to stores in databases."""
Opened = Callable[[Path], AbstractContextManager[SqlRecordStore]]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    if request.param == "memory":
        found = MemoryStore()
        furnish(found, "cin_a", "cin_b")
        yield found
        return
    opened = {"sqlite": sqlite_store, "postgres": postgres_store}[request.param]
    with opened(tmp_path) as found:
        furnish(found, "cin_a", "cin_b")
        yield found


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few passages are enough for a block of signs."""
    monkeypatch.setattr(sign_blocks, "FEWEST_PACKED", 2)
    monkeypatch.setattr(sign_blocks, "PACKED_TOGETHER", 4)
