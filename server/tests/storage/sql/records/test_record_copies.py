"""Further tables go with what their databases keep of them."""

from __future__ import annotations

from typing import Any, cast

import pytest

from personal_server.storage.postgres.dialect import PostgresDialect
from personal_server.storage.sql.dialect import Dialect
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.records.record_copies import drop_table
from personal_server.storage.sqlite.dialect import SqliteDialect


class _NotingSession:
    """Keeps the statements that it is given to run."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.statements: list[str] = []

    def run(self, sql: str, params: object = ()) -> Any:
        del params
        self.statements.append(sql)


@pytest.mark.parametrize(
    ("dialect", "name", "tables"),
    [
        (SqliteDialect(), "w7", ["w7"]),
        (SqliteDialect(), "r7", ["r7"]),
        (PostgresDialect(), "w7", ["w7", "p7"]),
        (PostgresDialect(), "r7", ["r7"]),
        (PostgresDialect(), "d7", ["d7"]),
    ],
)
def test_a_word_index_goes_with_what_is_posted(
    dialect: Dialect, name: str, tables: list[str]
) -> None:
    session = _NotingSession(dialect)
    drop_table(cast("Session", session), name)
    assert session.statements == [f"DROP TABLE IF EXISTS {table}" for table in tables]
