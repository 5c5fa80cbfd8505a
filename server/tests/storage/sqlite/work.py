"""How much a database works for a read: steps of its statements, and pages it looks at."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
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
    """A store whose connections are known to `counting`."""
    counters: Counters = {}

    def know(connection: apsw.Connection) -> None:
        counters.setdefault(connection, [0])

    apsw.connection_hooks.append(know)
    try:
        with sqlite_store(directory) as store:
            furnish(store, "cin_a", "cin_b")
            yield store, counters
    finally:
        apsw.connection_hooks.remove(know)


@contextmanager
def counting(counters: Counters) -> Generator[None]:
    """Count the steps of every statement in the block, the word index's too.

    Only there: to fill the stores that are asked takes tens of millions of steps.
    """
    for connection, counter in counters.items():
        _handle(connection, _step(counter), counters)
    try:
        yield
    finally:
        for connection in counters:
            _handle(connection, None, counters)


def _handle(
    connection: apsw.Connection, step: Callable[[], bool] | None, counters: Counters
) -> None:
    with suppress(apsw.ConnectionClosedError):  # which has nothing to count any more
        connection.set_progress_handler(step, 1, id=counters)


def _step(counter: list[int]) -> Callable[[], bool]:
    def step() -> bool:
        counter[0] += 1
        return False

    return step


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
        with counting(counters):
            before = _now(driver, counters)
            answer = read(snapshot)
            after = _now(driver, counters)
    return Work(*(b - a for a, b in zip(before, after, strict=True))), answer


def _now(driver: apsw.Connection, counters: Counters) -> Work:
    figures = (apsw.SQLITE_DBSTATUS_CACHE_HIT, apsw.SQLITE_DBSTATUS_CACHE_MISS)
    return Work(counters[driver][0], sum(driver.status(each)[0] for each in figures))
