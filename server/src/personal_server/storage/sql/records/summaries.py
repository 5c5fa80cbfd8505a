"""Summaries: what a source holds, counted and summed beside its lines.

Two tables stand beside the lines of a source (`layout`).  `d<n>`, days: of facet 0 one row a day,
of the others one for each day and value.  `g<n>`, groups: of each field that is kept so one row for
each value with what labels and marks it.  A row tells how many records there are, and of each
measured number how many have it and its exact sum.  The rows come from the same expressions as the
figures of lines (`measures`), in the transaction that writes the lines.  What is read from them:
`summary_segments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import orjson

from pdpp_kernel.values import COMPARED_CODE_POINTS, DAY_NANOSECONDS, ValueKind
from personal_server.storage.row_rules import TIME_KINDS
from personal_server.storage.sql.dialect import Dialect, Value
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.layout import Column, Layout
from personal_server.storage.sql.measures import sums, unscaled
from personal_server.storage.tables import ColumnKind

# Where records stand that have no time, or one beyond 64 bits of nanoseconds.
NO_DAY, FAR_PAST, FAR_FUTURE = -(1 << 40), -(1 << 39), 1 << 39
LEAST, MOST = -(2**63), 2**63 - 1
# The value of a facet that a record does not have.
ABSENT = -1
# Keys of groups tell a text behind a sign, so that there is one for none, and no more of labels and
# marks than leaves room for three texts in an index of PostgreSQL's.
NO_TEXT, TEXT, LONG_TEXT = "", "=", ">"
# Strings that a column cuts are longer, too.
LONGEST_LABEL_BYTES = COMPARED_CODE_POINTS - 1


class _Summary(NamedTuple):
    """One of the tables: `parts` are, of each field or facet, the key that a line `r` adds to."""

    table: str
    key: tuple[str, ...]
    parts: list[tuple[str, ...]]


def count_lines(session: Session, layout: Layout, number: int, ids: Iterable[Value]) -> None:
    """Add lines to the summaries."""
    listed = orjson.dumps(list(ids)).decode()
    for summary in _summaries(layout, number, session.dialect):
        session.run(_counting(summary, layout, number, session.dialect, 1), (listed,))


def uncount_lines(session: Session, layout: Layout, number: int, ids: Iterable[Value]) -> None:
    """Take lines from the summaries, before they are removed; of an empty row nothing stays."""
    listed = orjson.dumps(list(ids)).decode()
    for summary in _summaries(layout, number, session.dialect):
        session.run(_counting(summary, layout, number, session.dialect, -1), (listed,))
        for key in summary.parts:
            session.run(_emptying(summary, key, layout, number, session.dialect), (listed,))


def summaries_are_sound(session: Session, layout: Layout, number: int) -> bool:
    """Whether they say what the lines say, as the database compares them: a text may be damaged."""
    for summary in _summaries(layout, number, session.dialect):
        stored = f"SELECT {', '.join(_columns(summary, layout))} FROM {summary.table}"  # noqa: S608
        counted = " UNION ALL ".join(_told(summary, layout, f"r{number} r", session.dialect))
        for one, other in ((stored, counted), (counted, stored)):
            differ = f"SELECT * FROM ({one}) AS a EXCEPT SELECT * FROM ({other}) AS b"  # noqa: S608
            if session.first(f"SELECT 1 FROM ({differ}) AS c LIMIT 1"):  # noqa: S608
                return False
    return True


def _summaries(layout: Layout, number: int, dialect: Dialect) -> Iterator[_Summary]:
    if layout.by_day:
        day = _day(layout, dialect)
        values = ["0", *(_flag(layout, name) for name in layout.facets)]
        days = [(str(facet), day, value) for facet, value in enumerate(values)]
        yield _Summary(f"d{number}", ("facet", "day", "value"), days)
    if layout.grouped:
        groups = [
            (str(n), _text(layout, one.field), _label(layout, one.label), _label(layout, one.mark))
            for n, one in enumerate(layout.grouped)
        ]
        yield _Summary(f"g{number}", ("field", "value", "label", "mark"), groups)


def _counting(summary: _Summary, layout: Layout, number: int, dialect: Dialect, sign: int) -> str:
    """A statement whose parameter are the ids, as JSON; it looks each line up once."""
    columns = _columns(summary, layout)
    added = ", ".join(
        f"{n} = {summary.table}.{n} + excluded.{n}" for n in columns[len(summary.key) :]
    )
    return (
        f"INSERT INTO {summary.table} ({', '.join(columns)}) {_lines(layout, number, dialect)}"
        f" {' UNION ALL '.join(_told(summary, layout, 'r', dialect, sign))}"
        f" ON CONFLICT ({', '.join(summary.key)}) DO UPDATE SET {added}"
    )


def _emptying(
    summary: _Summary, key: tuple[str, ...], layout: Layout, number: int, dialect: Dialect
) -> str:
    """For one part, since SQLite finds keys of one by the index.  No text leaves the database: that
    of a damaged line may be none.
    """
    selected = f"{_lines(layout, number, dialect)} SELECT {', '.join(key)} FROM r"  # noqa: S608
    return (
        f"DELETE FROM {summary.table} WHERE n <= 0 AND ({', '.join(summary.key)}) IN ({selected})"  # noqa: S608
    )


def _lines(layout: Layout, number: int, dialect: Dialect) -> str:
    names = ", ".join(("id", *(column.name for column in layout.columns)))
    ids = dialect.values("?", ColumnKind.INTEGER)
    return f"WITH r AS MATERIALIZED (SELECT {names} FROM r{number} WHERE id IN {ids})"  # noqa: S608


def _told(
    summary: _Summary, layout: Layout, lines: str, dialect: Dialect, sign: int = 1
) -> Iterator[str]:
    """For each part, what its rows are, from lines `r`."""
    figures = ["count(*)", *_figures(layout, dialect)]
    signed = ", ".join(figures if sign > 0 else (f"-({figure})" for figure in figures))
    by = ", ".join(str(index + 1) for index in range(1, len(summary.key)))
    for key in summary.parts:
        yield f"SELECT {', '.join(key)}, {signed} FROM {lines} GROUP BY {by}"  # noqa: S608


def _columns(summary: _Summary, layout: Layout) -> list[str]:
    """Key, number of records, and of each measured column its presence, its sums, its odd ones."""
    return [*summary.key, "n", *layout.summary_figures]


def _figures(layout: Layout, dialect: Dialect) -> Iterator[str]:
    for column in layout.measured_columns:
        name = f"r.{column.name}"
        yield f"count({name})"
        figures = sums(name, column.kind, dialect)
        yield from (f"coalesce({figure}, 0)" for figure in figures)
        yield from ["0"] * (2 - len(figures))
        odd = unscaled(name, column.kind, dialect)
        odd = odd or f"{name} NOT BETWEEN {LEAST} AND {MOST}"
        yield f"coalesce(sum(CASE WHEN {odd} THEN 1 ELSE 0 END), 0)"


def _flag(layout: Layout, field: str) -> str:
    column = layout.by_field[field]
    return f"CASE r.{column.name} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE {ABSENT} END"


def _text(layout: Layout, field: str) -> str:
    return f"coalesce('{TEXT}' || r.{layout.by_field[field].name}, '{NO_TEXT}')"


def _label(layout: Layout, field: str | None) -> str:
    column = layout.column(field)
    if field is None or column is None:
        return f"CAST('{NO_TEXT}' AS text)"
    is_long = f"octet_length(r.{column.name}) > {LONGEST_LABEL_BYTES}"
    return f"CASE WHEN {is_long} THEN '{LONG_TEXT}' ELSE {_text(layout, field)} END"


def _day(layout: Layout, dialect: Dialect) -> str:
    column = day_column(layout)
    if column is None:
        return str(NO_DAY)
    name = f"r.{column.name}"
    if column.kind is ValueKind.DATE:
        return f"coalesce({name}, {NO_DAY})"
    day = str(DAY_NANOSECONDS)
    before = f"-1 - {dialect.quotient(f'-1 - {name}', day)}"
    return (
        f"CASE WHEN {name} IS NULL THEN {NO_DAY} WHEN {name} > {MOST} THEN {FAR_FUTURE}"
        f" WHEN {name} < {LEAST} THEN {FAR_PAST}"
        f" WHEN {name} < 0 THEN {before} ELSE {dialect.quotient(name, day)} END"
    )


def day_column(layout: Layout) -> Column | None:
    """The time that tells the day of a record."""
    column = layout.column(layout.placed)
    return column if column is not None and column.kind in TIME_KINDS else None
