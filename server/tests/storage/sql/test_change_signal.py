"""Whoever waits is told what any process wrote, on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.change_signal import DatabaseSignal
from personal_server.storage.sql.snapshot import SearchableDatabase
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.worlds import furnish, note, write
from tests.postgresql import schema, server

Two = tuple[SearchableDatabase, SearchableDatabase]
ENOUGH_SECONDS = 120.0


@contextmanager
def two_of_a_file(directory: Path) -> Generator[Two, None, None]:
    path = directory / "records.db"
    with closing(SqliteDatabase(path)) as one, closing(SqliteDatabase(path)) as other:
        yield one, other


@contextmanager
def two_of_a_schema(directory: Path, listen_url: str | None = None) -> Generator[Two, None, None]:
    url = server().url()
    with (
        schema() as name,
        closing(PostgresDatabase(url, directory, name, listen_url=listen_url)) as one,
        closing(PostgresDatabase(url, directory, name)) as other,
    ):
        yield one, other


def listening(directory: Path) -> AbstractContextManager[Two]:
    return two_of_a_schema(directory, server().url())


def deaf(directory: Path) -> AbstractContextManager[Two]:
    return two_of_a_schema(directory, "postgresql://owner@/postgres?host=/nowhere")


def store_of(database: SearchableDatabase, directory: Path) -> SqlRecordStore:
    return SqlRecordStore(database, "owner", directory / "blobs")


@pytest.mark.parametrize("opened", [two_of_a_file, two_of_a_schema, listening, deaf])
def test_what_another_process_writes_is_told(
    opened: Callable[[Path], AbstractContextManager[Two]], tmp_path: Path
) -> None:
    with opened(tmp_path) as (one, other), closing(DatabaseSignal(one)) as signal:
        furnish(store_of(other, tmp_path), "cin_a")
        seen = signal.count
        for number in range(2):
            write(store_of(other, tmp_path), "cin_a", [note(f"k{number}")])
            before, seen = seen, signal.wait(seen, ENOUGH_SECONDS)
            assert seen > before


@pytest.mark.parametrize("opened", [two_of_a_file, listening])
def test_all_who_wait_are_told_and_reads_tell_nothing(
    opened: Callable[[Path], AbstractContextManager[Two]], tmp_path: Path
) -> None:
    with opened(tmp_path) as (one, _), closing(DatabaseSignal(one)) as signal:
        store = store_of(one, tmp_path)
        furnish(store, "cin_a")
        seen = signal.count
        store.add_sealing_key(b"k" * 32, 1)
        assert signal.wait(seen, 0.1) == seen
        told: list[int] = []
        waiting = [
            threading.Thread(target=lambda: told.append(signal.wait(seen, ENOUGH_SECONDS)))
            for _ in range(4)
        ]
        for each in waiting:
            each.start()
        write(store, "cin_a", [note("k1")])
        for each in waiting:
            each.join()
        assert all(count > seen for count in told)
        assert len(told) == 4


def test_whoever_waits_when_it_ends_is_let_go(tmp_path: Path) -> None:
    with two_of_a_file(tmp_path) as (one, _):
        signal = DatabaseSignal(one)
        waiting = threading.Thread(target=signal.wait, args=(signal.count, 600.0))
        waiting.start()
        signal.close()
        waiting.join(ENOUGH_SECONDS)
        assert not waiting.is_alive()


def test_a_session_that_listened_is_made_anew(tmp_path: Path) -> None:
    with listening(tmp_path) as (one, other), closing(DatabaseSignal(one)) as signal:
        furnish(store_of(other, tmp_path), "cin_a")
        seen = signal.count
        write(store_of(other, tmp_path), "cin_a", [note("k1")])
        seen = signal.wait(seen, ENOUGH_SECONDS)
        with psycopg.connect(server().url(), autocommit=True) as administrator:
            ended = administrator.execute(
                b"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            )
            assert ended.rowcount == 1
        write(store_of(other, tmp_path), "cin_a", [note("k2")])
        assert signal.wait(seen, ENOUGH_SECONDS) > seen


class Silent:
    """A database to which somebody writes all the time, and which cannot be read at first."""

    def __init__(self, looks: int) -> None:
        self._left = looks
        self.heads = (1, None)
        self.looked = threading.Event()

    def await_write(self, seconds: float) -> bool:
        assert seconds == 1.0
        return True

    @contextmanager
    def read(self, seconds: float) -> Generator[Any, None, None]:
        assert seconds == 1.0
        self._left -= 1
        if self._left < 0:
            self.looked.set()
            raise StorageUnavailable("The store cannot be used now.")
        yield self

    def first(self, sql: str) -> tuple[int, None]:
        del sql
        self.heads = (self.heads[0] + 1, None)
        return self.heads


@pytest.mark.parametrize("looks", [0, 1, 3])
def test_what_cannot_be_looked_at_tells_nothing_and_ends_no_watch(looks: int) -> None:
    database = Silent(looks)
    with closing(DatabaseSignal(cast("SearchableDatabase", database))) as signal:
        assert signal.count == 0
        assert database.looked.wait(ENOUGH_SECONDS)
        # the first look is what later ones are compared with
        assert signal.wait(0, 0) == max(0, looks - 1)
