"""A copy of a database is whole, goes on where it was ended, and is proven."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from personal_server.domain.search_words import parse_words
from personal_server.enforcement.plans import SearchPlan
from personal_server.storage.sql.care import whole_copy
from personal_server.storage.sql.care.copy_mark import is_being_copied
from personal_server.storage.sql.care.whole_copy import CopyRefused, DatabaseCopy, stored_tables
from personal_server.storage.sql.migrations import known_steps, tables_of
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.conftest import database_of, sqlite_store
from server.tests.storage.ports.test_passages import embed
from server.tests.storage.worlds import FILES_STREAM, furnish, note, scope, write
from tests.new_files import new_file

NOTES = [note(f"n{number}", body=f"rain {number}") for number in range(7)]
Told = list[tuple[str, int, int]]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SqlRecordStore]:
    with sqlite_store(tmp_path / "source") as store:
        furnish(store, "cin_a")
        write(store, "cin_a", NOTES)
        write(store, "cin_a", [{"id": "f1"}], stream=FILES_STREAM)
        yield store


@pytest.fixture
def target(tmp_path: Path) -> Iterator[SqliteDatabase]:
    with closing(new_file(tmp_path / "target" / "records.db")) as database:
        yield database


def copied(
    store: SqlRecordStore, target: SqliteDatabase, told: Told | None = None
) -> dict[str, str]:
    def tell(name: str, done: int, count: int) -> None:
        if told is not None:
            told.append((name, done, count))

    with database_of(store).write() as session:
        return DatabaseCopy(session, target, tell).run()


def finish(store: SqlRecordStore, target: SqliteDatabase) -> None:
    with database_of(store).write() as session:
        copy = DatabaseCopy(session, target)
        copy.run()
        copy.finish()


def is_open(database: SqliteDatabase) -> bool:
    with database.read() as session:
        return not is_being_copied(session)


def found(database: SqliteDatabase, text: str) -> list[str]:
    store = SqlRecordStore(database, "owner", database.path.parent / "blobs")
    with store.snapshot() as snapshot:
        plan = SearchPlan((scope(),), parse_words(text))
        return sorted(each.key for each in snapshot.search(plan).candidates)


def test_every_table_is_copied_and_none_opens_it_before_it_is_whole(
    source: SqlRecordStore, target: SqliteDatabase
) -> None:
    digests = copied(source, target)
    assert not is_open(target)
    assert {"cin_a/notes", "cin_a/files", "connections", "declarations"} <= digests.keys()
    assert copied(source, target) == digests
    finish(source, target)
    assert is_open(target)
    # words are made anew of the texts
    assert (
        found(target, "rain") == found(database_of(source), "rain") == [f"n{n}" for n in range(7)]
    )
    assert found(target, "3") == ["n3"]


def test_progress_is_told_by_table_and_a_copy_goes_on_behind_what_is_there(
    source: SqlRecordStore, target: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_copy, "LINES_AT_ONCE", 3)
    told: Told = []
    copied(source, target, told)
    assert [each for each in told if each[0] == "cin_a/notes"] == [
        ("cin_a/notes", done, 7) for done in (3, 6, 7)
    ]
    told.clear()
    copied(source, target, told)
    assert told == []
    write(source, "cin_a", [note("n7", body="rain 7")])
    copied(source, target, told)
    assert [each for each in told if each[0] == "cin_a/notes"] == [("cin_a/notes", 8, 8)]


def test_what_changed_since_is_copied_anew(source: SqlRecordStore, target: SqliteDatabase) -> None:
    copied(source, target)
    write(source, "cin_a", [note("n3", body="sunshine"), "n4"])
    finish(source, target)
    assert found(target, "sunshine") == ["n3"]
    assert found(target, "rain") == ["n0", "n1", "n2", "n5", "n6"]


def test_a_source_that_is_gone_is_gone_from_the_copy_too(
    source: SqlRecordStore, target: SqliteDatabase
) -> None:
    furnish(source, "cin_b")
    write(source, "cin_b", NOTES)
    assert "cin_b/notes" in copied(source, target)
    with target.read() as session:
        number = session.value("SELECT tables FROM sources WHERE connection_id = 'cin_b'")
        find, tables = session.dialect.find_table, [f"{kind}{number}" for kind in "rhwdg"]
        assert all(session.first(find, (table,)) for table in tables)
    source.erase_connection("cin_b", 2)
    assert "cin_b/notes" not in copied(source, target)
    with target.read() as session:
        assert not any(session.first(find, (table,)) for table in tables)
        rows = session.rows("SELECT connection_id FROM sources")
    assert {each for (each,) in rows} == {"cin_a"}


def test_numbers_go_on_where_they_were(source: SqlRecordStore, target: SqliteDatabase) -> None:
    furnish(source, "cin_b")
    write(source, "cin_b", NOTES)
    source.erase_connection("cin_b", 2)  # its number is never given again
    finish(source, target)
    places: list[tuple[int, int]] = []
    for store in (source, SqlRecordStore(target, "owner", target.path.parent / "blobs")):
        furnish(store, "cin_c")
        write(store, "cin_c", [note("later")])
        with store.snapshot() as snapshot, database_of(store).read() as session:
            number = session.value("SELECT max(source) FROM sources")
            places.append((snapshot.horizon, number))
    assert places[0] == places[1] == (16, 4)


def test_a_database_with_something_in_it_is_no_target(
    source: SqlRecordStore, target: SqliteDatabase
) -> None:
    other = SqlRecordStore(target, "owner", target.path.parent / "blobs")
    furnish(other, "cin_c")
    with pytest.raises(CopyRefused):
        copied(source, target)
    assert is_open(target)


def test_a_copy_of_another_server_is_not_gone_on_with(
    source: SqlRecordStore, target: SqliteDatabase, tmp_path: Path
) -> None:
    copied(source, target)
    with sqlite_store(tmp_path / "another") as another:
        with database_of(another).write() as session:
            session.run("UPDATE facts SET said = 'another' WHERE name = 'epoch'")
        with pytest.raises(CopyRefused):
            copied(another, target)


def test_a_copy_that_is_never_the_same_is_refused(
    source: SqlRecordStore, target: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(1_000))

    def digest(*_: object) -> str:
        return str(next(numbers))

    monkeypatch.setattr(whole_copy.CopiedTable, "digest", digest)
    with pytest.raises(CopyRefused):
        copied(source, target)
    assert not is_open(target)


def test_every_table_of_the_schema_has_one_row_class() -> None:
    names = [table.name for table in stored_tables()]
    assert len(names) == len(set(names))
    assert set(tables_of(known_steps())) <= set(names)


SIGNS = "SELECT tables, field, id, place, signs FROM passage_signs ORDER BY 1, 2, 3, 4"


def held(database: SqliteDatabase, statement: str) -> list[tuple[Any, ...]]:
    with database.read() as session:
        return [tuple(line) for line in session.rows(statement)]


def test_passages_are_copied_and_their_signs_are_made_anew(
    source: SqlRecordStore, target: SqliteDatabase
) -> None:
    embed(source)
    copied(source, target)
    signs = held(target, SIGNS)
    assert len(signs) == 7
    assert signs == held(database_of(source), SIGNS)
    with target.write() as session:
        session.run("UPDATE passages SET vector = x'00'")
        session.run("DELETE FROM passage_signs")
        session.run("INSERT INTO passage_blocks VALUES (1, 'body', 9, 0, x'00', x'00')")
    copied(source, target)
    assert held(target, SIGNS) == signs
    assert held(target, "SELECT * FROM passage_blocks") == []


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM h# WHERE id = (SELECT id FROM r# WHERE k = 'n3')", []),
        ("UPDATE h# SET data = replace(data, 'rain', 'gold') WHERE id = @", []),
        ("UPDATE r# SET wc = NULL WHERE k = 'n3'", []),
        ("UPDATE r# SET k = k", ["n3"]),
    ],
    ids=["lost", "damaged", "not indexed", "sound"],
)
def test_what_is_damaged_is_copied_as_it_is_and_has_no_words(
    source: SqlRecordStore, target: SqliteDatabase, statement: str, words: list[str]
) -> None:
    place = "(SELECT id FROM r# WHERE k = 'n3')"
    with database_of(source).write() as session:
        number = session.value("SELECT tables FROM sources WHERE stream = 'notes'")
        session.run(statement.replace("@", place).replace("#", str(number)))
    finish(source, target)
    for table in "rh":
        every = "SELECT * FROM #".replace("#", f"{table}{number}")
        assert held(target, every) == held(database_of(source), every)
    assert found(target, "3") == words
