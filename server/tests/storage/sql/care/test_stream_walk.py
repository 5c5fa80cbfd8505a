"""A walk along a stream tells what is not what was written, record by record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from personal_server.storage.sql.care import stream_walk
from personal_server.storage.sql.care.faults import StreamCheck
from personal_server.storage.sql.care.stream_walk import WORD_SUM_MASK, StreamWalk, word_mark
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.source_tables import find_source
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.worlds import NOTES_STREAM, furnish, note, write
from tests.new_files import new_file


class Archive:
    """Notes, whose tables are written into behind the back of the store."""

    def __init__(self, directory: Path) -> None:
        self.database: SqliteDatabase = new_file(directory / "records.db")
        self.store = SqlRecordStore(self.database, "owner", directory / "blobs")
        furnish(self.store, "cin_a")
        write(self.store, "cin_a", [note(f"n{n}", body=f"rain {n}", words=n) for n in range(5)])
        self.told: list[int] = []

    def change(self, sql: str, *params: object) -> None:
        with self.database.write() as session:
            source = find_source(session, "owner", "cin_a", "notes")
            assert source is not None
            session.run(sql.replace("#", str(source.tables)), params)  # type: ignore[arg-type]

    def walk(self, primary_key: tuple[str, ...] | None = ("id",)) -> tuple[int, StreamCheck]:
        check = StreamCheck("cin_a", "notes")
        with self.database.read() as session:
            source = find_source(session, "owner", "cin_a", "notes")
            assert source is not None
            walk = StreamWalk(session, source, primary_key, check)
            return walk.follow(self.told.append), check


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    opened = Archive(tmp_path)
    yield opened
    opened.database.close()


def test_nothing_is_found_where_all_is_as_it_was_written(archive: Archive) -> None:
    words, check = archive.walk()
    assert check == StreamCheck("cin_a", "notes", records=5)
    assert 0 < words <= WORD_SUM_MASK
    assert archive.walk() == (words, check)


@pytest.mark.parametrize(("every", "told"), [(1, [1, 2, 3, 4, 5]), (2, [2, 4]), (5, [5]), (6, [])])
def test_it_tells_how_far_it_came(
    archive: Archive, every: int, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_walk, "TOLD_EVERY", every)
    archive.walk()
    assert archive.told == told


def test_words_that_change_places_change_the_sum() -> None:
    for number in range(200):
        one, other = b"rain", b"w%d" % number
        told = word_mark(one, 1, number) + word_mark(other, 1, number + 1)
        assert told != word_mark(other, 1, number) + word_mark(one, 1, number + 1)


def test_the_sum_of_words_is_of_the_words_of_all_records(archive: Archive) -> None:
    before, _ = archive.walk()
    write(archive.store, "cin_a", [note("n1", body="rain 7", words=1)])
    changed, _ = archive.walk()
    write(archive.store, "cin_a", [note("n1", body="rain 1", words=1)])
    assert archive.walk()[0] == before != changed
    archive.change("UPDATE r# SET wc = NULL WHERE k = 'n1'")  # it waits for its words
    waiting, check = archive.walk()
    assert waiting != before
    assert not check.values_differ


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE h# SET data = '{}' WHERE id = (SELECT id FROM r# WHERE k = 'n2')",
        "UPDATE h# SET sum = sum + 1 WHERE id = (SELECT id FROM r# WHERE k = 'n2')",
        "DELETE FROM h# WHERE id = (SELECT id FROM r# WHERE k = 'n2')",
        "UPDATE r# SET ce = ce + 1 WHERE k = 'n2'",
        "UPDATE r# SET cs = cs + 1 WHERE k = 'n2'",
    ],
)
def test_a_damaged_record_is_told_and_nothing_else_of_it(archive: Archive, sql: str) -> None:
    archive.change(sql)
    _, check = archive.walk()
    assert (check.damaged.keys, check.records) == (["n2"], 5)
    assert (check.misnamed.count, check.unexplained.count, check.values_differ) == (0, 0, False)


@pytest.mark.parametrize(
    "change", ["{words} = 7", "{words} = NULL", "wc = x'00000009'", "{id} = {id} || 'x'"]
)
def test_a_value_or_a_count_that_differs_is_told(archive: Archive, change: str) -> None:
    names = {column.field: column.name for column in layout_of(NOTES_STREAM).columns}
    archive.change(f"UPDATE r# SET {change.format_map(names)} WHERE k = 'n3'")  # noqa: S608
    _, check = archive.walk()
    assert check.values_differ
    assert (check.damaged.count, check.can_be_made_anew) == (0, True)


def test_a_change_that_the_feed_lacks_is_told(archive: Archive) -> None:
    write(archive.store, "cin_a", [note("n4", body="new", words=4)])
    _, check = archive.walk()
    assert check.unexplained.count == 0
    archive.change("DELETE FROM changes WHERE key = 'n4' AND next IS NULL")
    archive.change("DELETE FROM changes WHERE key = 'n0'")
    _, check = archive.walk()
    assert sorted(check.unexplained.keys) == ["n0", "n4"]
    assert check.damaged.count == check.misnamed.count == 0


def test_a_key_that_is_anothers_is_told(archive: Archive) -> None:
    found = [archive.walk(key)[1].misnamed for key in (None, ("id",), ("at",), ("words", "id"))]
    assert [each.count for each in found] == [0, 0, 5, 5]
    assert len(archive.walk(("mood",))[1].misnamed.keys) == 3
