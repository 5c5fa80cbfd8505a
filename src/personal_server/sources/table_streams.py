"""The stream that a table's columns describe."""

from __future__ import annotations

from collections.abc import Callable

from personal_server.sources.declaration import (
    Field,
    Stream,
    day,
    flag,
    free,
    integer,
    key,
    moment,
    number,
    text,
    word,
)
from personal_server.sources.table_columns import Column
from personal_server.sources.table_files import Table

Made = Callable[[Column, str, bool], Field]

_MAKERS: dict[str, Made] = {
    "boolean": lambda column, about, _: flag(column.name, about),
    "integer": lambda column, about, _: integer(column.name, about, summed=True),
    "number": lambda column, about, _: number(column.name, about, summed=True),
    "date": lambda column, about, event: day(column.name, about, event=event),
    "date-time": lambda column, about, event: moment(column.name, about, event=event),
    "json": lambda column, about, _: free(column.name, about),
}


def stream_of(table: Table, columns: tuple[Column, ...], time: str | None) -> Stream:
    """A stream with a field for each column and an `id` for the record."""
    fields = [_field(column, is_event=column.name == time) for column in columns]
    return Stream(
        table.stream,
        f"Rows of {table.name}"[:200],
        "All columns: " + ", ".join(column.source_name for column in columns)[:900],
        [key(), *(each for each in fields if each.name != "id")],
        time_field=time,
    )


def _field(column: Column, *, is_event: bool) -> Field:
    about = f"Column {column.source_name}"
    if column.kind in _MAKERS:
        return _MAKERS[column.kind](column, about, is_event)
    if column.is_grouped:
        return word(column.name, about, title=column.is_title, searched=True)
    return text(column.name, about, title=column.is_title)
