"""A log is forgotten from its beginning, in slices, and its end is known when it is empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from personal_server.domain.log_chain import GENESIS, link_of
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.sql.logs import log_chain
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sql.logs.authorization_transaction import AUDIT
from personal_server.storage.sqlite.database import SqliteDatabase
from tests.new_files import new_file


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteDatabase]:
    monkeypatch.setattr(log_chain, "SLICE_LINES", 2)
    monkeypatch.setattr(log_chain, "PAUSE_SECONDS", 0.0)
    opened = new_file(tmp_path / "data" / "records.db")
    for subject in ("own_1", "own_2"):
        with SqlAuthorizationStore(opened, subject).write() as writer:
            for at_ns in (1, 2, 3, 9, 4):
                writer.insert(AuditRow(event="e", at_ns=at_ns, actor="owner", detail={}))
    yield opened
    opened.close()


def times(database: SqliteDatabase, subject: str = "own_1") -> list[int]:
    with SqlAuthorizationStore(database, subject).read() as reader:
        return [row.at_ns for row in reader.rows(AuditRow)]


def heads(database: SqliteDatabase) -> list[tuple[int, int, bool]]:
    with database.read() as session:
        return [(h.number, h.at_ns, h.is_cut) for h in AUDIT.heads(session, "own_1")]


@pytest.mark.parametrize(
    ("before", "left", "cut"),
    [
        (1, [1, 2, 3, 9, 4], []),
        (2, [2, 3, 9, 4], [(1, 1, True)]),
        (3, [3, 9, 4], [(2, 2, True)]),
        (9, [9, 4], [(3, 3, True)]),  # a clock that went back keeps what came before
        (10, [], [(5, 4, True)]),
    ],
)
def test_lines_go_up_to_the_first_that_is_not_older(
    database: SqliteDatabase, before: int, left: list[int], cut: list[tuple[int, int, bool]]
) -> None:
    SqlAuthorizationStore(database, "own_1").forget_audit(before)
    assert (times(database), heads(database)) == (left, cut)
    assert times(database, "own_2") == [1, 2, 3, 9, 4]


def test_a_log_goes_on_where_it_ended(database: SqliteDatabase) -> None:
    with database.read() as session:
        tail = AUDIT.tail(session, "own_1")
        lines = list(AUDIT.lines(session, "own_1"))
    link = GENESIS
    for line in lines:
        link = link_of(link, line.members)
        assert line.link == link
    assert tail == (5, link)
    store = SqlAuthorizationStore(database, "own_1")
    store.forget_audit(10)
    with database.read() as session:
        assert AUDIT.tail(session, "own_1") == tail
    with store.write() as writer:
        writer.insert(AuditRow(event="e", at_ns=11, actor="owner", detail={}))
    with database.read() as session:
        assert [line.number for line in AUDIT.lines(session, "own_1")] == [6]


def test_lines_of_before_the_chain_end_without_a_head(database: SqliteDatabase) -> None:
    with database.write() as session:
        session.run("UPDATE audit_events SET link = NULL WHERE event_id = 5")
    with database.read() as session:
        assert AUDIT.tail(session, "own_1") == (5, GENESIS)
    SqlAuthorizationStore(database, "own_1").forget_audit(10)
    # the last slice has that line alone
    assert (times(database), heads(database)) == ([], [])
