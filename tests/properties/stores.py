"""The stores that every property runs on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from personal_server.storage.ports import RecordStore
from personal_server.storage.sqlite.database import Database
from personal_server.storage.sqlite.functions import register
from personal_server.storage.sqlite.records import SqliteRecordStore
from personal_server.storage.sqlite.tables import SCHEMA
from tests.oracle.memory import MemoryStore

STORES = ("memory", "sqlite")


@contextmanager
def open_store(kind: str, directory: Path) -> Generator[RecordStore, None, None]:
    """An empty store."""
    if kind == "memory":
        yield MemoryStore()
        return
    database = Database(directory / "records.db", [SCHEMA], setup=register)
    try:
        yield SqliteRecordStore(database, "owner", directory / "blobs")
    finally:
        database.close()
