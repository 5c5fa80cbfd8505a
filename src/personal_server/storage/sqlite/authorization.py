"""The authorization store in SQLite: rows in and out of the tables of `authorization_schema`.

Rule: every statement begins its condition with the subject; names of tables and columns come from
the row classes only, values are always bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, get_type_hints

import orjson

from personal_server.storage.authorization_ports import After, Before, NotNull, R
from personal_server.storage.authorization_rows import AuditRow, Row
from personal_server.storage.sqlite.authorization_schema import SHOWN_ARTIFACTS, TABLES
from personal_server.storage.sqlite.database import Database, SchemaModule
from personal_server.storage.sqlite.session import Line, Session, Value

SCHEMA = SchemaModule("authorization", (TABLES, SHOWN_ARTIFACTS))


class SqliteAuthorizationStore:
    """The rows of one subject in an open file."""

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self.subject_id = subject_id

    @contextmanager
    def read(self) -> Generator[SqliteTransaction]:
        """A consistent view."""
        with self._database.read() as session:
            yield SqliteTransaction(session, self.subject_id)

    @contextmanager
    def write(self) -> Generator[SqliteTransaction]:
        """A transaction that ends with the block."""
        with self._database.write() as session:
            yield SqliteTransaction(session, self.subject_id)


class SqliteTransaction:
    """Statements over the rows of one subject."""

    def __init__(self, session: Session, subject_id: str) -> None:
        self._session = session
        self._subject_id = subject_id

    def get(self, table: type[R], **key: object) -> R | None:
        """The only row that meets the conditions."""
        condition, values = self._condition(key)
        lines = self._session.rows(f"{_select(table)} WHERE {condition} LIMIT 2", values)
        if len(lines) > 1:
            raise LookupError(f"Several rows of {table.table}.")
        return _row(table, lines[0]) if lines else None

    def rows(
        self,
        table: type[R],
        *,
        order: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        **where: object,
    ) -> list[R]:
        """The rows that meet the conditions, in order."""
        condition, values = self._condition(where)
        by = (order,) if order else table.key or ("subject_id",)
        direction = " DESC" if descending else ""
        ordering = ", ".join(f"{_checked(table, column)}{direction}" for column in by)
        sql = f"{_select(table)} WHERE {condition} ORDER BY {ordering} LIMIT ?"
        lines = self._session.rows(sql, [*values, -1 if limit is None else limit])
        return [_row(table, line) for line in lines]

    def count(self, table: type[Row], **where: object) -> int:
        """How many rows meet the conditions."""
        condition, values = self._condition(where)
        sql = f"SELECT count(*) FROM {table.table} WHERE {condition}"  # noqa: S608 (our names)
        return int(self._session.value(sql, values))

    def insert(self, row: Row) -> None:
        """Add a row, once."""
        if isinstance(row, AuditRow) and not row.event_id:
            sql = "SELECT coalesce(max(event_id), 0) + 1 FROM audit_events WHERE subject_id = ?"
            number = int(self._session.value(sql, [self._subject_id]))
            row = dataclasses.replace(row, event_id=number)
        columns = _columns(type(row))
        marks = ", ".join("?" * (len(columns) + 1))
        names = ", ".join(("subject_id", *columns))
        sql = f"INSERT INTO {row.table} ({names}) VALUES ({marks})"  # noqa: S608 (our names)
        values = [_stored(row, column, getattr(row, column)) for column in columns]
        self._session.run(sql, [self._subject_id, *values])

    def change(self, table: type[Row], to: Mapping[str, object], **where: object) -> int:
        """Set columns where the conditions hold."""
        condition, values = self._condition(where)
        assignments = ", ".join(f"{_checked(table, column)} = ?" for column in to)
        sql = f"UPDATE {table.table} SET {assignments} WHERE {condition}"  # noqa: S608 (our names)
        new = [_stored(table, column, value) for column, value in to.items()]
        self._session.run(sql, [*new, *values])
        return self._session.changed

    def delete(self, table: type[Row], **where: object) -> int:
        """Remove the rows that meet the conditions."""
        condition, values = self._condition(where)
        self._session.run(f"DELETE FROM {table.table} WHERE {condition}", values)  # noqa: S608 (our names)
        return self._session.changed

    def _condition(self, where: Mapping[str, object]) -> tuple[str, list[Value]]:
        parts = ["subject_id = ?"]
        values: list[Value] = [self._subject_id]
        for column, condition in where.items():
            comparison, bound = _comparison(condition)
            parts.append(f"{column} {comparison}")
            values += bound
        return " AND ".join(parts), values


def _comparison(condition: object) -> tuple[str, list[Value]]:
    match condition:
        case None:
            return "IS NULL", []
        case NotNull():
            return "IS NOT NULL", []
        case Before(value):
            return "<= ?", [value]
        case After(value):
            return "> ?", [value]
        case bool() | int() | str() | bytes():
            return "= ?", [condition]
        case _:
            raise TypeError("Conditions compare scalars.")


@cache
def _columns(table: type[Row]) -> tuple[str, ...]:
    return tuple(column.name for column in dataclasses.fields(table))


@cache
def _json_columns(table: type[Row]) -> frozenset[str]:
    return frozenset(c.name for c in dataclasses.fields(table) if c.metadata.get("json"))


@cache
def _hints(table: type[Row]) -> Mapping[str, Any]:
    return get_type_hints(table)


def _checked(table: type[Row], column: str) -> str:
    if column != "subject_id" and column not in _columns(table):
        raise LookupError(f"{table.table} has no such column.")
    return column


@cache
def _select(table: type[Row]) -> str:
    return f"SELECT {', '.join(_columns(table))} FROM {table.table}"  # noqa: S608 (our names)


def _stored(table: type[Row] | Row, column: str, value: object) -> Value:
    kind = table if isinstance(table, type) else type(table)
    if value is None:
        return None
    if column in _json_columns(kind):
        return orjson.dumps(value).decode()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | str | bytes):
        return value
    raise TypeError(f"{kind.table}.{column} holds scalars.")


def _row(table: type[R], line: Line) -> R:
    columns = _columns(table)
    values = {c: _loaded(table, c, v) for c, v in zip(columns, line, strict=True)}
    return table(**values)


def _loaded(table: type[Row], column: str, value: object) -> object:
    if value is None:
        return None
    if column in _json_columns(table):
        loaded: object = orjson.loads(str(value))
        return _as_tuple(loaded) if str(_hints(table)[column]).startswith("tuple") else loaded
    return bool(value) if _hints(table)[column] is bool else value


def _as_tuple(loaded: object) -> object:
    return tuple(_sequence(loaded))


def _sequence(loaded: Any) -> Sequence[object]:
    return loaded
