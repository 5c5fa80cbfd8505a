from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pdpp_kernel.errors import InvalidState, NotFound
from personal_server.collecting.canaries import PlantedPlace, plant
from personal_server.storage.catalog import Catalog, StoredCatalogs
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import furnish, note, write


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with sqlite_store(tmp_path) as found:
        furnish(found, "cin_a", "cin_b")
        yield found


class Notes:
    """Where canaries were noted, and the notes taken back."""

    def __init__(self) -> None:
        self.noted: list[PlantedPlace] = []
        self.forgotten: list[PlantedPlace] = []


def planted(store: RecordStore, notes: Notes, connection_id: str | None = None) -> PlantedPlace:
    catalog: Catalog = StoredCatalogs(store, KnownDeclarations())()
    return plant(
        store,
        catalog,
        "notes",
        connection_id,
        notes.noted.append,
        notes.forgotten.append,
        os.urandom,
        10**18,
    )


def keys(store: RecordStore, connection_id: str) -> Sequence[str]:
    with store.snapshot() as snapshot:
        return [row.key for row in snapshot.export(connection_id, "notes")]


def test_no_record_is_written_over_whose_key_is_made_up_again(store: RecordStore) -> None:
    """Of keys of two digits all but one are taken."""
    taken = [note(f"{number:02}", title=f"Title {number}") for number in range(100) if number != 37]
    write(store, "cin_b", taken)
    for _ in range(40):
        notes = Notes()
        try:
            place = planted(store, notes)
        except InvalidState:
            assert notes.noted == notes.forgotten
        else:
            assert place.key == "37"
            break
    with store.snapshot() as snapshot:
        rows = {row.key: row.data for row in snapshot.export("cin_b", "notes")}
    assert {key: rows[key]["title"] for key in rows if key != "37"} == {
        f"{number:02}": f"Title {number}" for number in range(100) if number != 37
    }


def test_a_planted_record_is_stored_where_it_was_noted(store: RecordStore) -> None:
    write(
        store,
        "cin_b",
        [note(f"n-{10**9 + number}", title=f"Title {number}") for number in range(9)],
    )
    notes = Notes()
    place = planted(store, notes)
    assert notes.noted == [place]
    assert notes.forgotten == []
    assert place.connection_id == "cin_b"
    assert place.key in keys(store, "cin_b")
    assert len(keys(store, "cin_b")) == 10


def test_without_records_to_model_it_on_nothing_is_noted(store: RecordStore) -> None:
    notes = Notes()
    for connection_id in (None, "cin_a", "cin_none"):
        with pytest.raises((NotFound, InvalidState)):
            planted(store, notes, connection_id)
    assert notes.noted == []
