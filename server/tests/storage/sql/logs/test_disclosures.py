from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from personal_server.domain.disclosure import AskedDetail
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from personal_server.storage.sql.logs import disclosures
from personal_server.storage.sql.logs.disclosures import SqlDisclosures
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.ports.test_disclosure_stores import FIRST
from server.tests.storage.worlds import furnish, note, write
from tests.new_files import new_file

PLACES = [
    ("cin_a", "notes", "k1"),
    ("cin_a", "notes", "k2"),
    ("cin_a", "rest", "k1"),
    ("cin_b", "notes", "k1"),
]
EMPTY_SEARCH = (None, None, "")


def erase_record(store: SqlRecordStore) -> object:
    return store.delete_record("cin_a", "notes", "k1", 9)


def erase_stream(store: SqlRecordStore) -> object:
    return store.delete_stream("cin_a", "notes", 9)


def erase_connection(store: SqlRecordStore) -> object:
    return store.erase_connection("cin_a", 9)


@pytest.mark.parametrize(
    ("erase", "left"),
    [
        (erase_record, [*PLACES[1:], EMPTY_SEARCH]),
        (erase_stream, [*PLACES[2:], EMPTY_SEARCH]),
        (erase_connection, [*PLACES[3:], EMPTY_SEARCH]),
    ],
)
def test_nothing_beside_the_log_tells_of_what_was_erased(
    tmp_path: Path, erase: Callable[[SqlRecordStore], object], left: list[object]
) -> None:
    database = SqliteDatabase(tmp_path / "data" / "records.db")
    store = SqlRecordStore(database, "owner", tmp_path / "blobs")
    furnish(store, "cin_a", "cin_b")
    write(store, "cin_a", [note("k1"), note("k2")])
    log = SqlDisclosures(database, "owner")
    entries = [
        replace(
            FIRST,
            connection_id=connection_id,
            stream=stream,
            detail=AskedDetail(b"s", "/v1/x", tuple(key.split())),
        )
        for connection_id, stream, key in (*PLACES, EMPTY_SEARCH)
    ]
    log.append_disclosures(entries)
    assert erase(store)
    found = sorted(log.disclosures(DisclosureQuery(10)), key=lambda item: item[0])
    assert len(found) == 5
    details = log.asked_details([number for number, _ in found])
    kept = [
        (entry.connection_id, entry.stream, " ".join(details[number].keys))
        for number, entry in found
        if number in details
    ]
    assert kept == left
    database.close()


def test_nothing_is_kept_beside_a_log_that_was_told_so(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "records.db")
    log = SqlDisclosures(database, "owner", keeps_details=False)
    log.append_disclosures([replace(FIRST, detail=AskedDetail(b"s", "/v1/x"))])
    assert log.asked_details([1]) == {}
    with database.read() as session:
        assert session.value("SELECT commitment FROM disclosures") is None
    database.close()


def test_details_go_in_slices_and_nothing_else_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disclosures, "SLICE_LINES", 2)
    monkeypatch.setattr(disclosures, "PAUSE_SECONDS", 0.0)
    database = new_file(tmp_path / "data" / "records.db")
    log = SqlDisclosures(database, "owner")
    detail = AskedDetail(b"s", "/v1/x")
    log.append_disclosures([replace(FIRST, at_ns=at_ns, detail=detail) for at_ns in range(5)])
    log.append_disclosures([replace(FIRST, at_ns=5), replace(FIRST, at_ns=6, detail=detail)])
    for before, left in ((0, [1, 2, 3, 4, 5, 7]), (3, [4, 5, 7]), (4, [5, 7]), (9, [])):
        log.forget_details(before)
        assert sorted(log.asked_details(range(9))) == left
    assert len(log.disclosures(DisclosureQuery(10))) == 7
    database.close()


@pytest.mark.parametrize("asked", [("link", "x"), ("detail", "x"), ("number", "1")])
def test_a_log_is_asked_for_members_of_an_entry_alone(
    tmp_path: Path, asked: tuple[str, str]
) -> None:
    database = new_file(tmp_path / "data" / "records.db")
    log = SqlDisclosures(database, "owner")
    with pytest.raises(ValueError, match=asked[0]):
        log.disclosures(DisclosureQuery(10, (asked,)))
    with pytest.raises(ValueError, match="grant_id"):
        log.shares("day", DisclosureQuery(10, (("grant_id", "grt_1"),)))
    assert log.disclosed_since("grt_1", 0) == (0, 0)
    database.close()
