"""What the reads of a snapshot ask of a database, and how many seconds they are given."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from personal_server.storage.sql.compiler import Statement
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.source_tables import SourceTables


def statements_read(patch: pytest.MonkeyPatch) -> list[Statement]:
    """The statements by which snapshots read lines, from now on."""
    asked: list[Statement] = []
    read = SqlSnapshot.lines

    def lines(reader: SqlSnapshot, source: SourceTables, statement: Statement) -> list[Line]:
        asked.append(statement)
        return read(reader, source, statement)

    patch.setattr(SqlSnapshot, "lines", lines)
    return asked


def seconds_given(patch: pytest.MonkeyPatch, session: Session, in_time: list[bool]) -> list[float]:
    """The seconds that each attempt of such sessions is given, from now on.

    Shapes: each takes the first of `in_time`, which says whether it comes to its end.
    """
    given: list[float] = []

    def attempt(_: object, seconds: float, read: Callable[[], object]) -> object:
        given.append(seconds)
        return read() if in_time.pop(0) else None

    patch.setattr(type(session), "attempt", attempt)
    return given
