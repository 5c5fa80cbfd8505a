"""The stores that every property runs on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from personal_server.storage.memory import MemoryStore
from personal_server.storage.ports import RecordStore

STORES = ("memory",)


@contextmanager
def open_store(kind: str) -> Generator[RecordStore, None, None]:
    """An empty store."""
    del kind
    yield MemoryStore()
