"""How much a database works for a read: steps of its statements, and pages it looks at."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import apsw

from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteSession
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import furnish

Counters = dict[apsw.Connection, list[int]]


class Work(NamedTuple):
    """What a read cost."""

    steps: int
    pages: int


@contextmanager
def counted_store(directory: Path) -> Generator[tuple[SqlRecordStore, Counters]]:
    """A store whose connections count the steps of every statement, the word index's too."""
    counters: Counters = {}

    def count(connection: apsw.Connection) -> None:
        counter = counters.setdefault(connection, [0])

        def step() -> bool:
            counter[0] += 1
            return False

        connection.set_progress_handler(step, 1, id=counters)

    apsw.connection_hooks.append(count)
    try:
        with sqlite_store(directory) as store:
            furnish(store, "cin_a", "cin_b")
            yield store, counters
    finally:
        apsw.connection_hooks.remove(count)


def work_of(
    store: SqlRecordStore, counters: Counters, read: Callable[[SqlSnapshot], object]
) -> tuple[Work, object]:
    """What a read costs when it is asked a second time, and what it answers."""
    with store.snapshot() as snapshot:
        read(snapshot)
    with store.snapshot() as snapshot:
        session = snapshot.session
        assert isinstance(session, SqliteSession)
        driver = session.driver
        before = _now(driver, counters)
        answer = read(snapshot)
        after = _now(driver, counters)
    return Work(*(b - a for a, b in zip(before, after, strict=True))), answer


def _now(driver: apsw.Connection, counters: Counters) -> Work:
    figures = (apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS)
    return Work(counters[driver][0], sum(driver.status(each)[0] for each in figures))
