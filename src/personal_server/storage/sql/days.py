"""Days: what a source holds, counted and summed for each day and each value of a facet.

A table `d<n>` stands beside the lines of a source (`layout`).  Of facet 0 it has one row a day, of
the others one for each day and value: how many records there are, and of each measured number how
many have it and its exact sum.  The rows come from the same expressions as the figures of lines
(`measures`), in the transaction that writes the lines.  What is read from them: `day_segments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from personal_server.domain.values import DAY_NANOSECONDS, ValueKind
from personal_server.storage.meaning import TIME_KINDS
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


def count_lines(session: Session, layout: Layout, number: int, ids: Iterable[Value]) -> None:
    """Add lines to their days."""
    if layout.by_day:
        listed = orjson.dumps(list(ids)).decode()
        for statement in _counting(layout, number, session.dialect, 1):
            session.run(statement, (listed,))


def uncount_lines(session: Session, layout: Layout, number: int, ids: Iterable[Value]) -> None:
    """Take lines from their days, before they are removed; of an empty day nothing stays."""
    if not layout.by_day:
        return
    listed = orjson.dumps(list(ids)).decode()
    for statement in _counting(layout, number, session.dialect, -1):
        session.run(statement, (listed,))
    day, among = _day(layout, session.dialect), session.dialect.values("?", ColumnKind.INTEGER)
    session.run(
        f"DELETE FROM d{number} WHERE n <= 0"  # noqa: S608
        f" AND day IN (SELECT {day} FROM r{number} r WHERE r.id IN {among})",
        (listed,),
    )


def days_are_sound(session: Session, layout: Layout, number: int) -> bool:
    """Whether days say what the lines say."""
    if not layout.by_day:
        return True
    found = set(session.rows(f"SELECT {', '.join(_columns(layout))} FROM d{number}"))  # noqa: S608
    told = [session.rows(each) for each in _counted(layout, number, session.dialect)]
    return found == {row for rows in told for row in rows}


def _counting(layout: Layout, number: int, dialect: Dialect, sign: int) -> list[str]:
    """One statement for each facet; its parameter are the ids, as JSON."""
    ids = f" WHERE r.id IN {dialect.values('?', ColumnKind.INTEGER)}"
    columns = _columns(layout)
    added = ", ".join(f"{name} = d{number}.{name} + excluded.{name}" for name in columns[3:])
    return [
        f"INSERT INTO d{number} ({', '.join(columns)}) {statement}"
        f" ON CONFLICT (facet, day, value) DO UPDATE SET {added}"
        for statement in _counted(layout, number, dialect, ids, sign)
    ]


def _counted(
    layout: Layout, number: int, dialect: Dialect, where: str = "", sign: int = 1
) -> Iterator[str]:
    """For each facet, what its rows are, from the lines."""
    figures = ["count(*)", *_figures(layout, dialect)]
    signed = ", ".join(figures if sign > 0 else (f"-({each})" for each in figures))
    values = ["0", *(_value(layout, name) for name in layout.facets)]
    for facet, value in enumerate(values):
        yield (
            f"SELECT {facet}, {_day(layout, dialect)}, {value}, {signed}"  # noqa: S608
            f" FROM r{number} r{where} GROUP BY 2, 3"
        )


def _columns(layout: Layout) -> list[str]:
    """Key, number of records, and of each measured column its presence, its sums, its odd ones."""
    return ["facet", "day", "value", "n", *layout.day_figures]


def _figures(layout: Layout, dialect: Dialect) -> Iterator[str]:
    for column in layout.measured_columns:
        name = f"r.{column.name}"
        yield f"count({name})"
        found = sums(name, column.kind, dialect)
        yield from (f"coalesce({each}, 0)" for each in found)
        yield from ["0"] * (2 - len(found))
        odd = unscaled(name, column.kind, dialect)
        odd = odd or f"{name} NOT BETWEEN {LEAST} AND {MOST}"
        yield f"coalesce(sum(CASE WHEN {odd} THEN 1 ELSE 0 END), 0)"


def _value(layout: Layout, field: str) -> str:
    column = layout.by_field[field]
    return f"CASE r.{column.name} WHEN 1 THEN 1 WHEN 0 THEN 0 ELSE {ABSENT} END"


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
