"""How much memory connections take for pages of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from personal_server.storage.sqlite.database import SqliteDatabase, SqliteSession
from personal_server.storage.sqlite.page_memory import FEW_KIB, READER_KIB, WRITER_KIB
from tests.new_files import new_file


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    with closing(new_file(tmp_path / "records.db")) as found:
        yield found


def held_bytes(session: SqliteSession) -> int:
    return session.driver.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]


def kib_of(session: SqliteSession) -> int:
    return -int(str(session.value("PRAGMA cache_size")))


def test_readers_before_and_after_keep_few_pages(database: SqliteDatabase) -> None:
    with database.read() as first:
        assert kib_of(first) == READER_KIB
    database.keep_few_pages()
    with database.read() as again, database.read() as second:
        assert again is first
        assert (kib_of(again), kib_of(second)) == (FEW_KIB, FEW_KIB)


def test_what_was_read_is_let_go_and_read_again(database: SqliteDatabase) -> None:
    with database.read() as reader:
        tables = int(str(reader.value("SELECT count(*) FROM sqlite_schema, sqlite_schema")))
        held = held_bytes(reader)
    database.let_read_pages_go()
    with database.read() as again:
        assert again is reader
        assert held_bytes(again) < held
        assert again.value("SELECT count(*) FROM sqlite_schema, sqlite_schema") == tables


def test_a_read_under_way_is_left_alone(database: SqliteDatabase) -> None:
    with database.read() as reader:
        database.let_read_pages_go()
        database.keep_few_pages()
        assert kib_of(reader) == READER_KIB


def test_where_one_reader_fails_none_is_lost(database: SqliteDatabase) -> None:
    with database.read() as reader, database.read():
        busy = database.idle.qsize()
    reader.driver.close()
    with pytest.raises(apsw.ConnectionClosedError):
        database.let_read_pages_go()
    assert database.idle.qsize() == busy + 2


@pytest.mark.parametrize("keeps_few", [False, True])
def test_a_large_write_holds_few_pages_and_lets_them_go(
    database: SqliteDatabase, *, keeps_few: bool
) -> None:
    if keeps_few:
        database.keep_few_pages()
    with database.write() as session:
        session.run("CREATE TABLE spread (line INTEGER PRIMARY KEY, text TEXT)")
    with database.few_pages(), database.write() as session:
        session.many("INSERT INTO spread VALUES (?, ?)", [(n, "x" * 4_000) for n in range(1_000)])
        assert held_bytes(session) < 2 * FEW_KIB * 1024
    with database.write() as session:
        assert held_bytes(session) < FEW_KIB * 1024 // 2
        assert kib_of(session) == (FEW_KIB if keeps_few else WRITER_KIB)
        assert session.value("SELECT count(*) FROM spread") == 1_000
