"""Word indexes of the first release are made anew in the background."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from personal_server.app.stores import Stores, open_stores
from personal_server.collecting.unindexed import index_some
from personal_server.enforcement.rows import Matches
from personal_server.settings import Settings
from personal_server.storage.sql import unindexed
from personal_server.storage.sqlite.database import SqliteDatabase
from tests.storage.ports.asking import search
from tests.storage.released.directory import NOTEBOOK, unpack
from tests.storage.worlds import note, scope, write

NOTES = scope(NOTEBOOK)


@pytest.fixture
def released(tmp_path: Path) -> Iterator[Stores]:
    with open_stores(Settings(data_dir=unpack("2026-11-first", tmp_path)), serving=True) as stores:
        yield stores


def rain(stores: Stores) -> Matches:
    found: Matches = search(stores.records, "rain", scopes=(NOTES,))
    return found


def keys(found: Matches) -> list[str]:
    return sorted(candidate.key for candidate in found.candidates)


def test_a_search_says_how_much_it_does_not_know_yet(released: Stores) -> None:
    found = rain(released)
    assert (keys(found), found.pending) == ([], 9)
    write(released.records, NOTEBOOK, [note("n2", body="rain again"), note("n9", body="rain")])
    write(released.records, NOTEBOOK, ["n0"])
    found = rain(released)
    assert (keys(found), found.pending) == (["n2", "n9"], 7)


def test_slice_by_slice_everything_is_found_and_nothing_twice(
    released: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unindexed, "SLICE_RECORDS", 3)
    write(released.records, NOTEBOOK, [note("n2", body="sun"), note("n9", body="rain")])
    assert released.records.index_slice()
    write(released.records, NOTEBOOK, ["n8", note("n7", body="snow")])
    while released.records.index_slice():
        pass
    found = rain(released)
    assert (keys(found), found.pending) == (["n0", "n1", "n4", "n6", "n9"], 0)
    assert found.document_frequencies == (5,)


def test_pending_counts_only_what_is_visible(released: Stores) -> None:
    few = scope(NOTEBOOK, resources=frozenset({"n1", "n4"}))
    found = search(released.records, "rain", scopes=(few,))
    assert (keys(found), found.pending) == (["n1", "n4"], 0)


def test_the_index_of_before_leaves_the_file(released: Stores, tmp_path: Path) -> None:
    index_some(released.records)
    path = Settings(data_dir=tmp_path).database_path
    database = SqliteDatabase(next(tmp_path.rglob(path.name)))
    with database.read() as session:
        named = "SELECT name FROM sqlite_schema WHERE name GLOB ? AND sql LIKE '%fts5%'"
        assert session.rows(named, ("f*",)) == []
        assert session.rows(named, ("w*",)) != []
    database.close()


def test_a_changed_stream_waits_no_more(released: Stores) -> None:
    released.records.delete_stream(NOTEBOOK, "notes", 9)
    write(released.records, NOTEBOOK, [note("n1", body="rain")])
    while released.records.index_slice():
        pass
    assert keys(rain(released)) == ["n1"]
