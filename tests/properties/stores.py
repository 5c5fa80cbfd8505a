"""The stores that every property runs on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.store import SqlRecordStore
from tests.new_files import new_file
from tests.oracle.memory import MemoryStore
from tests.postgresql import postgres_store

STORES = ("memory", "sqlite", "postgres")


@contextmanager
def open_store(kind: str, directory: Path) -> Generator[RecordStore, None, None]:
    """An empty store."""
    if kind == "memory":
        yield MemoryStore()
        return
    if kind == "postgres":
        with postgres_store(directory) as store:
            yield store
        return
    database = new_file(directory / "records.db")
    try:
        yield SqlRecordStore(database, "owner", directory / "blobs")
    finally:
        database.close()
