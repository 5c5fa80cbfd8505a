"""Segments: how the lines of a source fall into groups.

Rule: no line needs a call-back: time buckets that hold many lines are ranges of the index, others
are integer arithmetic within stretches of constant UTC offset.
Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.values import (
    COMPARED_CODE_POINTS,
    DAY_NANOSECONDS,
    ValueKind,
    bound,
)
from personal_server.enforcement.asked_times import flagged, unflagged
from personal_server.storage.calendar import Calendar
from personal_server.storage.group_rules import listed_strings, step_start
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.dialect import Dialect
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.layout import Column
from personal_server.storage.sql.measures import measured
from personal_server.storage.sql.source_tables import Reader, ScopedSource

Key = tuple[Any, ...]
FAR_SLACK_NS = 50_000.0
# From so many lines per bucket on, a range of the index per bucket is the shorter way.
CROWDED = 30
_USUAL_DAYS = {
    Granularity.DAY: 1,
    Granularity.WEEK: 7,
    Granularity.MONTH: 30,
    Granularity.QUARTER: 91,
    Granularity.YEAR: 365,
}


class Side(msgspec.Struct, frozen=True):
    """One of the sides of a group: `point_of` turns what `sql` finds into its point.

    `whole` finds whole strings where `sql` finds those of a column, which cuts long ones;
    `found_of` is what `sql` finds of a point that is a string.
    `listed` makes the points of a list.
    """

    sql: str
    point_of: Callable[[Any], Any] = lambda value: value
    whole: str | None = None
    found_of: Callable[[str], str] = lambda point: point
    listed: Callable[[Any], Sequence[Any]] | None = None

    def points_of(self, value: Any) -> Sequence[Any]:
        """All points of what `sql` finds."""
        return (self.point_of(value),) if self.listed is None else self.listed(value)


Asking = Callable[["Segment", str], list[Line]]
"""Given a segment and what is to be found of its lines."""


class Segment(msgspec.Struct, frozen=True):
    """Lines of one source, and how they fall into groups; without sides all are one group.

    `is_summed`: its figures hold all of a sum, and no line is left to look at.
    """

    is_summed: ClassVar = False

    place: ScopedSource
    where: Where
    sides: tuple[Side, ...] = ()

    def key_of(self, values: Sequence[Any]) -> Key:
        """The points of a line, which begins with what the sides find."""
        return tuple(
            [side.point_of(value) for side, value in zip(self.sides, values, strict=False)]
        )

    @property
    def has_lists(self) -> bool:
        """Whether a line may be in several groups."""
        return any(side.listed is not None for side in self.sides)

    def points_of(self, values: Sequence[Any]) -> list[Sequence[Any]]:
        """All points of each side of a line; a list has several."""
        return [side.points_of(value) for side, value in zip(self.sides, values, strict=False)]

    def columns(self, *more: str) -> str:
        """What the sides find, and more."""
        return ", ".join((*(side.sql for side in self.sides), *more))

    def figures(self, metric: Metric, column: Column | None, dialect: Dialect) -> str:
        """How many lines there are, and the measures of a column."""
        if column is None:
            return "count(*)"
        return f"count(*){measured(metric, f'r.{column.name}', column.kind, dialect)}"

    def select(self, columns_sql: str, tail: str = "", more: Where | None = None) -> Statement:
        """Over the lines, of which `more` may be asked."""
        where = self.where if more is None else self.where & more
        return self.place.compiler.select(columns_sql, where, tail)

    def texts(self, number: int, field: str, ask: Asking) -> list[Line]:
        """(point of a side, string of a field, how many lines have both); `ask` counts what it is
        given, by what the side finds.
        """
        lines = whole_lines(self.place, field, ValueKind.STRING, lambda value: ask(self, value))
        side = self.sides[number]
        return [(side.point_of(values), text, count) for values, text, count in lines]

    @property
    def of_whole_strings(self) -> Segment:
        """The same lines, grouped by whole strings."""
        sides = [
            Side(side.whole or side.sql, side.point_of, listed=side.listed) for side in self.sides
        ]
        return replace(self, sides=tuple(sides))

    @property
    def by_group(self) -> str:
        """The end of a statement that gives one line for each group."""
        numbers = ", ".join(str(number + 1) for number in range(len(self.sides)))
        return f" GROUP BY {numbers}" if numbers else ""


class SummedSegment(Segment, frozen=True):
    """Rows `d` of a summary (`summaries`) in place of the lines that they count and sum."""

    is_summed = True
    letter: ClassVar = ""

    def figures(self, metric: Metric, column: Column | None, dialect: Dialect) -> str:  # noqa: ARG002
        """The sums that the rows hold already."""
        names = ["n"]
        if column is not None:
            present, *added, _ = self.place.compiler.layout.figures_of(column)
            count = 2 if column.kind is ValueKind.INTEGER else 1
            names += [present, *added[:count]]
        return ", ".join(f"coalesce(sum(d.{name}), 0)" for name in names)

    def select(self, columns_sql: str, tail: str = "", more: Where | None = None) -> Statement:
        """Over the rows."""
        where = self.where if more is None else self.where & more
        table = f"{self.letter}{self.place.source.tables} d"
        return Statement(f"SELECT {columns_sql} FROM {table}{where.sql}{tail}", where.params)  # noqa: S608


def is_cut(value: object) -> bool:
    """Whether what a column holds may be the beginning of a longer string only."""
    return isinstance(value, str) and len(value) >= COMPARED_CODE_POINTS


def whole_lines(
    scoped: ScopedSource, field: str, kind: ValueKind, ask: Callable[[str], list[Line]]
) -> list[Line]:
    """What is found of a field: of its column, of whole strings where that cuts one, or of the
    JSON text.
    """
    column = scoped.compiler.layout.column(field, kind)
    if column is None:
        return ask(scoped.compiler.in_text(field, kind))
    lines = ask(f"r.{column.name}")
    is_string = kind is ValueKind.STRING
    if is_string and any(is_cut(value) for line in lines for value in line):
        lines = ask(scoped.compiler.whole_string(column))
    return lines


def segments(
    reader: Reader, scoped: ScopedSource, where: Where, count: int, groupings: Sequence[Grouping]
) -> Iterator[Segment]:
    """All matching lines of a source, each in one segment.

    `count` says how many they are, where ranges of an index are worth thinking of.
    """
    sides = [plain_side(scoped, grouping) for grouping in groupings]
    timed = next(
        (n for n, grouping in enumerate(groupings) if grouping.granularity is not None), None
    )
    if timed is None:
        yield Segment(scoped, where, tuple(sides))
        return
    parts = _timed_parts(reader, scoped, where, count, groupings[timed])
    if groupings[timed].days is not None:
        parts = _parts_with_days(reader, scoped, where, count, groupings[timed])
    for side, part in parts:
        yield Segment(scoped, part, (*sides[:timed], side, *sides[timed + 1 :]))


def plain_side(scoped: ScopedSource, grouping: Grouping) -> Side:
    """By connection, by value, or by steps of a number."""
    if grouping.field is None:
        return Side("NULL", constant(scoped.source.connection_id))
    if grouping.granularity is not None:
        return Side("NULL")
    compiler = scoped.compiler
    column = compiler.layout.column(grouping.field, grouping.kind)
    if grouping.is_list:
        return Side(compiler.in_text(grouping.field, None), listed=_listed)
    value = f"r.{column.name}" if column else compiler.in_text(grouping.field, grouping.kind)
    if grouping.bin_width is not None:
        width = Fraction(grouping.bin_width)
        return Side(value, lambda value: step_start(value, width))
    if column is None or column.kind is not ValueKind.STRING:
        return Side(value)
    return Side(value, whole=compiler.whole_string(column))


def _timed_parts(
    reader: Reader, scoped: ScopedSource, where: Where, count: int, grouping: Grouping
) -> Iterator[tuple[Side, Where]]:
    column = scoped.compiler.layout.column(grouping.field, grouping.kind)
    if column is None or grouping.granularity is None:
        yield Side("NULL"), where
        return
    calendar = Calendar(grouping.time_zone, grouping.granularity)
    timed = _Timed(reader, scoped, column, where, calendar)
    yield Side("NULL"), where & Where((f"{timed.name} IS NULL",))
    yield from timed.parts(count, _USUAL_DAYS.get(grouping.granularity))


def _parts_with_days(
    reader: Reader, source: ScopedSource, where: Where, count: int, grouping: Grouping
) -> Iterator[tuple[Side, Where]]:
    """Whole days by the day that they are, whatever the zone; they have no hour."""
    days, granularity = grouping.days, grouping.granularity
    if days is None or granularity is None:
        return
    compiler, scope, plain = source.compiler, source.scope, replace(grouping, days=None)
    timed = where & compiler.asked(scope, (unflagged(days.flag),))
    whole = where & compiler.asked(scope, (flagged(days.flag),))
    yield from _timed_parts(reader, source, timed, count, plain)
    calendar = Calendar(grouping.time_zone, granularity)
    if calendar.is_fine:
        yield Side("NULL"), whole
        return
    stored = replace(plain, time_zone="UTC")
    for side, part in _timed_parts(reader, source, whole, count, stored):
        yield replace(side, point_of=_in_zone(side, calendar)), part


def _in_zone(side: Side, calendar: Calendar) -> Callable[[Any], Any]:
    """The bucket of a zone in the place of one of UTC, for days."""

    def point(found: Any) -> Any:
        start = side.point_of(found)
        if start is None or calendar.turns is not None:
            return start
        return calendar.day_start(int(start) // DAY_NANOSECONDS)

    return point


class _Timed:
    """Lines of a source by the time buckets of a column."""

    def __init__(
        self, reader: Reader, scoped: ScopedSource, column: Column, where: Where, calendar: Calendar
    ) -> None:
        self._reader = reader
        self._place = scoped
        self._column = column
        self._where = where
        self._calendar = calendar
        self._dialect = reader.session.dialect
        self.name = f"r.{column.name}"

    def parts(self, count: int, bucket_days: int | None) -> Iterator[tuple[Side, Where]]:
        """By ranges of crowded buckets, or by arithmetic."""
        low = self._extreme(self._where)
        if low is None:
            return
        is_day = self._column.kind is ValueKind.DATE
        if bucket_days is not None:
            high = int(self._extreme(self._where, highest=True))
            days = (high - int(low)) // (1 if is_day else DAY_NANOSECONDS)
            if count > CROWDED * (days // bucket_days + 1):
                yield from self._ranges(low)
                return
        if is_day:
            present = self._where & Where((f"{self.name} IS NOT NULL",))
            yield Side(self.name, self._of_day), present
        else:
            yield from self._periods(low)

    def _of_day(self, day: int) -> int:
        return self._calendar.key(day, ValueKind.DATE)

    def _ranges(self, low: Any) -> Iterator[tuple[Side, Where]]:
        """One bucket after the other; empty ones are passed over."""
        calendar, is_day = self._calendar, self._column.kind is ValueKind.DATE
        while low is not None:
            day = low if is_day else calendar.local_day(int(low))
            start = calendar.day_start(day)
            since = calendar.first_day(day) if is_day else start
            until = calendar.next_day(day) if is_day else calendar.day_end(day)
            yield Side("NULL", constant(start)), self._between(since, until)
            low = self._extreme(self._from(until))

    def _periods(self, low: Any) -> Iterator[tuple[Side, Where]]:
        """Stretches of constant offset, their lines by the number of their local unit."""
        while low is not None:
            since, until = self._calendar.period(int(low))
            yield self._period(int(low), since), self._between(since, until)
            low = self._extreme(self._from(until))

    def _period(self, inside_ns: int, since: int) -> Side:
        """`inside_ns` is the first instant of the stretch, so that no number is negative."""
        calendar = self._calendar
        unit, offset = calendar.unit_ns, calendar.offset_ns(inside_ns)
        base_unit = (inside_ns + offset) // unit
        base = base_unit * unit - offset

        def start(value: int) -> int:
            if not calendar.is_fine:
                return calendar.day_start(base_unit + value)
            begun = base + value * unit
            return begun if begun >= since else calendar.fine_start(base_unit + value, since)

        # instants beyond 64 bits are doubles, true to some microseconds: they are not cut short
        slack = "" if -(2**63) <= inside_ns < 2**63 else f" + {FAR_SLACK_NS}"
        divided = self._dialect.quotient(f"{self.name} - {bound(base)}{slack}", str(bound(unit)))
        if calendar.turns is not None:
            return Side(f"{divided} % {calendar.turns}", lambda n: calendar.turn(base_unit + n))
        return Side(divided, start)

    def _between(self, since: int, until: int) -> Where:
        bounds = (f"{self.name} >= ?", f"{self.name} < ?")
        return self._where.yielding(self._dialect, self.name) & Where(
            bounds, (bound(since), bound(until))
        )

    def _from(self, since: int) -> Where:
        first = Where((f"{self.name} >= ?",), (bound(since),))
        return self._where.yielding(self._dialect, self.name, ">") & first

    def _extreme(self, where: Where, *, highest: bool = False) -> Any:
        return self._reader.extreme(self._place, self._column, where, highest=highest)


def _listed(text: str | None) -> Sequence[str | None]:
    """The strings of a list, each once; of an empty one, and of none, null."""
    return listed_strings(None if text is None else orjson.loads(text)) or (None,)


def constant(point: Any) -> Callable[[Any], Any]:
    """The point of a side that is the same for all."""
    return lambda _: point
