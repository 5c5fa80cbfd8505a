"""Every test of the storage contract runs on every store."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from personal_server.storage.ports import RecordStore
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from tests.oracle.memory import MemoryStore
from tests.storage.worlds import furnish


@contextmanager
def sqlite_store(directory: Path) -> Generator[SqlRecordStore, None, None]:
    database = SqliteDatabase(directory / "data" / "records.db")
    try:
        yield SqlRecordStore(database, "owner", directory / "data" / "blobs")
    finally:
        database.close()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    if request.param == "memory":
        found = MemoryStore()
        furnish(found, "cin_a", "cin_b")
        yield found
        return
    with sqlite_store(tmp_path) as found:
        furnish(found, "cin_a", "cin_b")
        yield found
