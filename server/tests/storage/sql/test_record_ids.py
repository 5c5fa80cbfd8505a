"""Ids of records walk in time, and one whose place is taken stands near it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.record_ids import (
    FIRST_IN_TIME,
    SLOT_BITS,
    free_places,
    place_in_time,
)
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.worlds import FILES_STREAM, NOTES_STREAM
from tests.new_files import new_file

NOTES, FILES = layout_of(NOTES_STREAM), layout_of(FILES_STREAM)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    opened = new_file(tmp_path / "records.db")
    with opened.write() as session:
        session.run("CREATE TABLE r7 (id INTEGER PRIMARY KEY)")
    yield opened
    opened.close()


def test_a_place_is_microseconds_and_a_slot() -> None:
    assert SLOT_BITS == 5
    assert place_in_time(1_999, 5_000_000, NOTES) == 1 << 5
    assert place_in_time(2_000, 5_000_000, NOTES) == 2 << 5
    assert place_in_time(-1, 5_000_000, NOTES) == -1 << 5
    assert place_in_time(0, 5_000_000, NOTES) == 0


def test_what_has_no_time_stands_before_all_that_has_one() -> None:
    early, late = (place_in_time(None, at, NOTES) for at in (1_000, 2_000_000_000 * 10**9))
    assert early < late < FIRST_IN_TIME < place_in_time(-(2**63), 0, NOTES)
    assert late - early == 2_000_000_000 * 10**6 - 1 << 5
    # where nothing has one, they stand in the order of their creation
    assert place_in_time(None, 3_000, FILES) == 3 << 5


def test_an_instant_beyond_64_bits_stands_where_its_column_has_it() -> None:
    beyond = 2**63 + 5
    assert place_in_time(beyond, 0, NOTES) == 2**63 // 1_000 << 5
    assert place_in_time(2**63 - 1, 0, NOTES) == (2**63 - 1) // 1_000 << 5


def test_a_free_place_is_taken_and_a_taken_one_gives_way(database: SqliteDatabase) -> None:
    with database.write() as session:
        session.many("INSERT INTO r7 VALUES (?)", [(100,), (300,)])
        assert free_places(session, 7, []) == []
        assert free_places(session, 7, [(50, "a"), (200, "b")]) == [50, 200]
        [moved] = free_places(session, 7, [(100, "a")])
        assert moved == 100 + crc32(b"0 a") % 32
        [reserved] = free_places(session, 7, [(200, "a")], [200])
        assert reserved == 200 + crc32(b"0 a") % 32


def test_of_many_at_one_instant_each_has_a_place_of_its_own(database: SqliteDatabase) -> None:
    taken = range(1_000, 1_032)
    with database.write() as session:
        session.many("INSERT INTO r7 VALUES (?)", [(number,) for number in taken])
        keys = [(1_000, f"n{number}") for number in range(100)]
        found = free_places(session, 7, keys)
    assert len(set(found)) == 100
    assert not set(found) & set(taken)
    # the second try looks twice as far, and each one further by that
    assert 1_032 <= min(found) < 1_064
    assert max(found) < 1_000 + (32 << 8)
    with database.write() as session:
        assert free_places(session, 7, keys) == found
