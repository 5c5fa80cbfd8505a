"""Two stores with the same records, and whether they answer plans alike."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.sql.test_store import plain
from server.tests.storage.worlds import DECLARED, connection, write
from tests.oracle.memory import MemoryStore

Stores = tuple[MemoryStore, SqlRecordStore]


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


def assert_alike(stores: Stores, plans: Iterable[AggregatePlan]) -> None:
    """Every aggregate is what the definition of it says."""
    oracle, store = stores
    with oracle.snapshot() as slow, store.snapshot() as fast:
        assert isinstance(fast, SqlSnapshot)
        for plan in plans:
            assert plain(fast.aggregate(plan)) == plain(slow.aggregate(plan)), plan
