"""How often a read or a write waits for the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.store import SqlRecordStore
from tests.postgresql import schema
from tests.storage.postgres.wire import Wire, wire
from tests.storage.worlds import furnish, note, write

Store = tuple[SqlRecordStore, Wire]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with (
        schema() as name,
        wire() as found,
        closing(PostgresDatabase(found.url, tmp_path, name)) as database,
    ):
        store = SqlRecordStore(database, "owner", tmp_path / "blobs")
        furnish(store, "cin_a")
        write(store, "cin_a", [note("first")])
        yield store, found


def _turns(store: Store, count: int, title: str) -> int:
    records, found = store
    found.taken()
    write(records, "cin_a", [note(f"n{number}", title=title) for number in range(count)])
    return len(found.taken())


@pytest.mark.parametrize("titles", [("rain",), ("rain", "sun")], ids=["new", "changed"])
def test_a_batch_waits_as_often_as_one_record(store: Store, titles: tuple[str, ...]) -> None:
    for title in titles[:-1]:
        _turns(store, 500, title)
    # further ones are looks for free places in time
    assert _turns(store, 500, titles[-1]) <= _turns(store, 1, "snow") + 10
