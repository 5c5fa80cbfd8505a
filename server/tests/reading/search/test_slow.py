"""A search past its time: what was found in time is an answer, and it says what is missing."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite import database as sqlite
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    LETTERS,
    client,
    furnished,
    grant,
    package,
    stream_grant,
    write,
)

MANY = [
    {"id": f"m{n}", "created_at": "2026-03-01T00:00:00Z", "title": "t", "body": "rain again"}
    for n in range(3_000)
]

pytestmark = pytest.mark.of_files("the clock is looked at within a statement of SQLite")


@pytest.fixture
def door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """A store whose clock runs a second at each look: long reads are slow, short ones not."""
    monkeypatch.setattr(sqlite, "PROGRESS_STEPS", 1_000)
    seconds = count()
    database = SqliteDatabase(tmp_path / "records.db", monotonic=lambda: next(seconds))
    store = SqlRecordStore(database, "owner", tmp_path / "blobs")
    furnished(store)
    write(store, LETTERS, "entries", MANY)
    yield Door(store)
    database.close()


def test_a_source_that_is_too_slow_is_left_out_and_named(door: Door) -> None:
    reply = door.get("/v1/search?q=rain&limit=1", client())
    assert [hit["connection_id"] for hit in reply.data] == [DIARY]
    meta = reply.body["meta"]
    assert meta["recall"]["complete"] is False
    assert meta["recall"]["truncated"] is False
    assert meta["recall"]["sources_searched_count"] == 1
    assert meta["count"] == {"kind": "estimated", "value": 2}
    (warning,) = meta["warnings"]
    assert (warning["code"], warning["connection_id"]) == ("source_unavailable", LETTERS)


def test_the_next_page_says_the_same(door: Door) -> None:
    first = door.get("/v1/search?q=rain&limit=1", client())
    cursor = quote(first.body["next_cursor"])
    second = door.get(f"/v1/search?q=rain&limit=1&cursor={cursor}", client())
    assert second.keys != first.keys
    assert second.body["meta"]["recall"] == first.body["meta"]["recall"]
    assert second.warnings == ["source_unavailable"]


def test_a_package_counts_only_the_members_that_were_searched(door: Door) -> None:
    members = [
        grant(stream_grant(instance_ids=(connection_id,)), grant_id=f"grt_{n}")
        for n, connection_id in enumerate((DIARY, LETTERS))
    ]
    reply = door.get("/v1/search?q=rain", package(*members))
    found = reply.body["meta"]["package"]
    assert (found["member_count"], found["searched_count"], found["partial"]) == (2, 1, True)


def test_a_search_that_finds_nothing_in_time_is_query_timeout(door: Door) -> None:
    reply = door.get(f"/v1/search?q=rain&connection_id={LETTERS}", client())
    assert (reply.status, reply.code) == (503, "query_timeout")
