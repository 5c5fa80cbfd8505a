"""Two stores with the same records, and whether they answer plans alike."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path
from typing import Any

import orjson

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.test_store import plain
from server.tests.storage.worlds import DECLARED, connection, write
from tests.oracle.memory import MemoryStore

Stores = tuple[MemoryStore, SqlRecordStore]
Ask = Callable[[Any], object]
"""A read of a snapshot."""


@contextmanager
def stored_twice(
    directory: Path,
    records: Mapping[str, Sequence[Mapping[str, Any]]],
    declared: SourceDeclaration = DECLARED,
) -> Generator[Stores]:
    """The oracle and a file, with the notes of each account."""
    oracle = MemoryStore()
    with sqlite_store(directory) as store:
        for each in (oracle, store):
            each.put_declaration(declared, orjson.dumps(declared.raw), 1)
            for account, notes in records.items():
                each.add_connection(connection(account))
                write(each, account, notes, stream=declared.streams["notes"])
        yield oracle, store


def assert_same(stores: Stores, asks: Iterable[Ask]) -> None:
    """Every read answers what the definition of it says."""
    oracle, store = stores
    with oracle.snapshot() as slow, store.snapshot() as fast:
        for ask in asks:
            assert plain(ask(fast)) == plain(ask(slow)), ask


def assert_alike(stores: Stores, plans: Iterable[AggregatePlan]) -> None:
    """Every aggregate is what the definition of it says."""
    assert_same(stores, (methodcaller("aggregate", plan) for plan in plans))
