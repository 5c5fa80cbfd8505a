"""Row classes as SQL: the tables they are, plain statements over them, values in and out.

Rule: names of tables and columns come from row classes only, values are always bound.  Statements
with equal conditions are made here, once, when their module is loaded (the subject leads them,
where rows do not carry it); others are written out where they are used, with the names of columns
taken from the row class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

import orjson

from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Line
from personal_server.storage.tables import ColumnKind, StoredColumn, StoredRow, StoredTable

R = TypeVar("R", bound=StoredRow)
Columns = Sequence[StoredColumn[R, Any]]
SUBJECT = "subject_id"


# Statements -----------------------------------------------------------------------------------
def listed(columns: Columns[Any]) -> str:
    """The names of columns, with commas."""
    return ", ".join(column.name for column in columns)


@cache
def select(table: type[R], *equal: StoredColumn[R, Any], columns: Columns[R] | None = None) -> str:
    """Columns (`None`: all) of the rows with these values."""
    column_list = listed(table.table.columns if columns is None else columns)
    return f"SELECT {column_list} FROM {table.table}{_where(table, equal)}"  # noqa: S608


def exists(table: type[R], *equal: StoredColumn[R, Any]) -> str:
    """A line for each row with these values."""
    return f"SELECT 1 FROM {table.table}{_where(table, equal)}"  # noqa: S608


@cache
def insert(table: type[StoredRow]) -> str:
    """A whole row, its values in the order of the fields (without a number that it gets)."""
    columns = [column for column in table.table.columns if not column.numbered]
    led = [SUBJECT] if table.by_subject else []
    names = [*led, *(column.name for column in columns)]
    return f"INSERT INTO {table.table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608


@cache
def replacing(table: type[StoredRow]) -> str:
    """A whole row that takes the place of the one with its key."""
    led = [SUBJECT] if table.by_subject else []
    key = {*led, *table.table.key}
    assignments = ", ".join(f"{n} = excluded.{n}" for n in table.table.names if n not in key)
    return f"{insert(table)} ON CONFLICT ({', '.join(sorted(key))}) DO UPDATE SET {assignments}"


def ignoring(insert: str) -> str:
    """An insert that leaves a row with its key as it is."""
    return f"{insert} ON CONFLICT DO NOTHING"


def update(table: type[R], columns: Columns[R], *equal: StoredColumn[R, Any]) -> str:
    """New values of columns, of the rows with these values."""
    assigned = ", ".join(f"{column} = ?" for column in columns)
    return f"UPDATE {table.table} SET {assigned}{_where(table, equal)}"  # noqa: S608


def delete(table: type[R], *equal: StoredColumn[R, Any]) -> str:
    """The rows with these values, removed."""
    return f"DELETE FROM {table.table}{_where(table, equal)}"  # noqa: S608


def _where(table: type[StoredRow], equal: Columns[Any]) -> str:
    led = [SUBJECT] if table.by_subject else []
    return " WHERE " + " AND ".join(f"{name} = ?" for name in (*led, *equal))


# Values ---------------------------------------------------------------------------------------
def stored(column: StoredColumn[Any, Any], value: object) -> Value:
    """A value as its column holds it."""
    if value is None:
        return None
    if column.kind is ColumnKind.JSON:
        return orjson.dumps(value).decode()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float | str | bytes):
        return value
    raise TypeError(f"{column} holds scalars.")


def values_of(row: StoredRow) -> list[Value]:
    """What a row holds, in the order of its fields (without a number that it gets)."""
    return [
        getattr(row, column.name) if column.as_it_is else stored(column, getattr(row, column.name))
        for column in row.table.columns
        if not column.numbered
    ]


def row_from(table: type[R], line: Line) -> R:
    """A row from a line of all its columns."""
    loaded = zip(_loaders(table.table), line, strict=True)
    return table(
        **{
            name: value if load is None or value is None else load(value)
            for (name, load), value in loaded
        }
    )


@cache
def _loaders(table: StoredTable) -> tuple[tuple[str, Callable[[Any], object] | None], ...]:
    return tuple((column.name, _loader(column)) for column in table.columns)


def _loader(column: StoredColumn[Any, Any]) -> Callable[[Any], object] | None:
    if column.kind is ColumnKind.FLAG:
        return bool
    if column.kind is not ColumnKind.JSON:
        return None
    return _tuple if column.is_tuple else orjson.loads


def _tuple(text: str) -> tuple[object, ...]:
    return tuple(orjson.loads(text))
