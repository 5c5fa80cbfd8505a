"""Reading from summaries (`summaries`): rows of days and groups in place of the lines that they
count.

Rule: whether a read can be answered from them is decided here, and nowhere else.  Days
(`days_of`, `Days.segments`): it limits nothing but time and one facet.  Days that it holds whole
are taken from their rows, the ends of its time and days that belong to two buckets from the lines.
Groups (`_group_segment`): it limits nothing, and the grant shows what labels and marks the groups.
Rows of days, facets and fields that a read does not name are never met, so that how long it takes
tells nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Condition, Grouping
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind
from personal_server.storage.calendar import FINE_UNITS, Calendar
from personal_server.storage.sql.compiler import NOTHING, Statement, Where
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.layout import Column, Grouped
from personal_server.storage.sql.reads.segments import (
    Asking,
    Segment,
    Side,
    SummedSegment,
    constant,
    plain_side,
    segments,
)
from personal_server.storage.sql.records.summaries import (
    ABSENT,
    FAR_FUTURE,
    FAR_PAST,
    LEAST,
    LONG_TEXT,
    MOST,
    NO_DAY,
    NO_TEXT,
    TEXT,
    day_column,
)
from personal_server.storage.sql.source_tables import Reader, ScopedSource
from personal_server.storage.tables import ColumnKind

# What goes in, what comes out.  "Sum of amounts by month, from 10 March 09:00 on", of a stream
# whose rows of days (`d<n>`: day, facet, value, count, sums) exist:
#
#   time     10 Mar 09:00 ──┤ 11 Mar … 31 Mar │ April │ May …
#   lines    10 Mar 09:00–24:00                              a part of a day: the lines themselves
#   days                      11 … 31 Mar     │ April │ May  rows of whole days, added up by month
#   out      one segment of lines and one of days; the figures of both are added (`Segment`)
#
# A read limited by one facet (`is_read = true`) takes the rows of that facet; by two, the rows
# cannot tell it, and `days_of` answers `None`: then the lines are walked.  Nothing is guessed: the
# figures from days equal those from lines, which the oracle of the tests compares.

# No bucket has more days than a leap year.
_LENGTH_BITS, _LONGEST = 9, (1 << 9) - 1


class DaySegment(SummedSegment, frozen=True):
    """Rows of days.

    `buckets` are stretches of days, each as one number (`_stretch`), that the rows fall into.
    """

    letter = "d"
    buckets: tuple[int, ...] | None = None

    def select(self, columns_sql: str, tail: str = "", more: Where | None = None) -> Statement:
        """Over days, or over those of buckets."""
        if self.buckets is None:
            return SummedSegment.select(self, columns_sql, tail, more)
        where = self.where if more is None else self.where & more
        dialect = self.place.compiler.dialect
        first, length = f"(b.value >> {_LENGTH_BITS})", f"(b.value & {_LONGEST})"
        table = (
            f"{dialect.values('?', ColumnKind.INTEGER)} b {dialect.ordered_join}"
            f" d{self.place.source.tables} d"
            f" ON d.day >= {first} AND d.day < {first} + {length}"
        )
        params = (orjson.dumps(self.buckets).decode(), *where.params)
        return Statement(f"SELECT {columns_sql} FROM {table}{where.sql}{tail}", params)  # noqa: S608


# A stretch of days as one number, so that a list of them is one parameter: 19,800 days from 1970 on
# and 31 days long is 19,800 × 512 + 31.
def _stretch(first: int, length: int) -> int:
    return first << _LENGTH_BITS | length


def days_of(reader: Reader, scoped: ScopedSource, conditions: Iterable[Condition]) -> Days | None:
    """The days of what is visible and meets the conditions; `None` where days cannot tell that."""
    layout, scope = scoped.compiler.layout, scoped.scope
    if not layout.by_day or scope.is_picked:
        return None
    conditions = tuple(conditions)
    column = day_column(layout)
    bounds = _Bounds(column)
    if scope.window is not None:
        if scope.window.field != layout.placed or scoped.visible() == NOTHING:
            return None
        bounds = bounds.within(scope.window.since_ns, scope.window.until_ns)
    facets: dict[str, frozenset[int]] = {}
    for condition in conditions:
        if column is not None and (condition.field, condition.kind) == (column.field, column.kind):
            narrowed = bounds.meeting(condition)
            if narrowed is None:
                return None
            bounds = narrowed
        elif condition.field in layout.facets and condition.operator in (Operator.EQ, Operator.IN):
            values_known = facets.get(condition.field, frozenset((0, 1)))
            facets[condition.field] = values_known & {
                int(bool(value)) for value in condition.values
            }
        else:
            return None
    if len(facets) > 1 or not bounds.are_days:
        return None
    return Days(reader, scoped, conditions, bounds, facets)


class _Bounds(msgspec.Struct, frozen=True):
    """A stretch of time, in the units of its column: from `since` up to `until`, without that."""

    column: Column | None
    since: int | None = None
    until: int | None = None

    def within(self, since_ns: int | None, until_ns: int | None) -> _Bounds:
        """What is left of it between two instants; days begin at 00:00:00Z."""
        is_day = self.column is not None and self.column.kind is ValueKind.DATE
        width = DAY_NANOSECONDS if is_day else 1
        since = None if since_ns is None else -(-since_ns // width)
        until = None if until_ns is None else -(-until_ns // width)
        return self._narrowed(since, until)

    def meeting(self, condition: Condition) -> _Bounds | None:
        """What is left of it under a condition of its column, if that is a bound."""
        value = condition.value
        if not isinstance(value, int):
            return None
        match condition.operator:
            case Operator.GTE:
                return self._narrowed(value, None)
            case Operator.GT:
                return self._narrowed(value + 1, None)
            case Operator.LT:
                return self._narrowed(None, value)
            case Operator.LTE:
                return self._narrowed(None, value + 1)
            case _:
                return None

    def _narrowed(self, since: int | None, until: int | None) -> _Bounds:
        lower = [bound for bound in (self.since, since) if bound is not None]
        upper = [bound for bound in (self.until, until) if bound is not None]
        return replace(self, since=max(lower, default=None), until=min(upper, default=None))

    @property
    def unit(self) -> int:
        """How long a day is."""
        is_day = self.column is None or self.column.kind is ValueKind.DATE
        return 1 if is_day else DAY_NANOSECONDS

    @property
    def first(self) -> int | None:
        """The first whole day."""
        return None if self.since is None else -(-self.since // self.unit)

    @property
    def end(self) -> int | None:
        """The day behind the last whole one."""
        return None if self.until is None else self.until // self.unit

    @property
    def are_days(self) -> bool:
        """Whether it holds whole days, and its ends can be told from instants that are far."""
        ends = [bound for bound in (self.since, self.until) if bound is not None]
        if any(not LEAST <= bound <= MOST for bound in ends):
            return False
        return self.first is None or self.end is None or self.first < self.end

    @property
    def edges(self) -> Iterator[tuple[int, int]]:
        """The parts of days before the first whole one and behind the last."""
        if self.since is not None and self.first is not None and self.since % self.unit:
            yield self.since, self.first * self.unit
        if self.until is not None and self.end is not None and self.until % self.unit:
            yield self.end * self.unit, self.until

    @property
    def where(self) -> Where:
        """The whole days."""
        met = Where()
        for sign, day in ((">=", self.first), ("<", self.end)):
            if day is not None:
                met &= Where((f"d.day {sign} ?",), (day,))
        # records without a time meet no bound
        return met if met == Where() else met & Where(("d.day <> ?",), (NO_DAY,))


class Days:
    """The days of one source that a read can be answered from, and the lines that it needs beside
    them.  Only `days_of` makes one.
    """

    def __init__(
        self,
        reader: Reader,
        scoped: ScopedSource,
        conditions: Sequence[Condition],
        bounds: _Bounds,
        facets: dict[str, frozenset[int]],
    ) -> None:
        self._reader = reader
        self._place = scoped
        self._conditions = conditions
        self._bounds = bounds
        self._facets = facets
        self._layout = scoped.compiler.layout

    def count(self) -> int:
        """How many records there are."""
        total = 0
        for segment in self._parts(()):
            columns = segment.figures(Metric.COUNT, None, self._reader.session.dialect)
            count: Any = self._reader.value(segment.select(columns))
            total += int(count)
        return total

    def segments(
        self, groupings: Sequence[Grouping], metric: Metric, column: Column | None
    ) -> list[Segment] | None:
        """All records, each in one segment, by groups where these tell more than days; `None` where
        lines have to tell the figure.
        """
        if metric not in (Metric.COUNT, Metric.SUM, Metric.AVG):
            return None
        if metric is not Metric.COUNT and not self._sums(column):
            return None
        if (
            all(self._groups_by(grouping) for grouping in groupings)
            and len(self._named(groupings)) <= 1
        ):
            return list(self._parts(groupings))
        group = _group_segment(self._place, self._conditions, groupings)
        return None if group is None else [group]

    def _named(self, groupings: Sequence[Grouping]) -> set[str]:
        """The facets that take part."""
        grouped = {grouping.field for grouping in groupings if grouping.granularity is None}
        return {*self._facets, *(name for name in grouped if name is not None)}

    def _sums(self, column: Column | None) -> bool:
        """Whether the rows hold the whole sum of a column."""
        if column is None or column.field not in self._layout.measured:
            return False
        *_, odd = self._layout.figures_of(column)
        return not self._has(Where((f"d.{odd} > 0",)))

    def _groups_by(self, grouping: Grouping) -> bool:
        """Whether whole days, or whole facets, fall into its groups."""
        if grouping.granularity is None:
            plain = Grouping(grouping.field, grouping.kind)
            is_facet = grouping.field is None or grouping.field in self._layout.facets
            return grouping == plain and is_facet
        column = self._bounds.column
        if column is None or (grouping.field, grouping.kind) != (column.field, column.kind):
            return False
        if grouping.granularity in FINE_UNITS:
            return False
        if column.kind is ValueKind.DATE:
            return True
        in_utc = grouping.time_zone == "UTC"
        is_longer = grouping.granularity not in (Granularity.DAY, Granularity.WEEKDAY)
        # a day of another zone ends within one of these
        return (in_utc or is_longer) and not self._has(
            Where(("d.day IN (?, ?)",), (FAR_PAST, FAR_FUTURE))
        )

    def _has(self, further: Where) -> bool:
        where = Where(("d.facet = 0",)) & self._bounds.where & further
        segment = DaySegment(self._place, where)
        return self._reader.value(segment.select("1", " LIMIT 1")) is not None

    def _parts(self, groupings: Sequence[Grouping]) -> Iterator[Segment]:
        facets_named = self._named(groupings)
        facet = next(
            (
                n
                for n, facet_name in enumerate(self._layout.facets, 1)
                if facet_name in facets_named
            ),
            0,
        )
        where = Where(("d.facet = ?",), (facet,)) & self._bounds.where
        for values in self._facets.values():
            listed = ", ".join(map(str, sorted(values))) or "NULL"
            where &= Where((f"d.value IN ({listed})",))
        sides = [self._side(grouping) for grouping in groupings]
        timed = next(
            (n for n, grouping in enumerate(groupings) if grouping.granularity is not None), None
        )
        if timed is None:
            yield DaySegment(self._place, where, tuple(sides))
        else:
            yield from self._by_time(groupings, timed, where, sides)
        for since, until in self._bounds.edges:
            lines = self._lines(since, until)
            yield from segments(self._reader, self._place, lines, 0, groupings)

    def _side(self, grouping: Grouping) -> Side:
        if grouping.field is None:
            return Side("NULL", constant(self._place.source.connection_id))
        return Side("d.value", lambda value: None if value == ABSENT else value)

    def _by_time(
        self, groupings: Sequence[Grouping], timed: int, where: Where, sides: list[Side]
    ) -> Iterator[Segment]:
        """Days by their buckets, the days of two by their lines, and what has no time."""
        grouping = groupings[timed]
        calendar = Calendar(grouping.time_zone, grouping.granularity or Granularity.DAY)
        scoped, dated = self._place, where & Where(("d.day <> ?",), (NO_DAY,))
        if self._bounds.where == Where():
            sides[timed] = Side("NULL")
            undated = where & Where(("d.day = ?",), (NO_DAY,))
            yield DaySegment(scoped, undated, tuple(sides))
        if calendar.turns is not None:
            # far enough from 1970 that no day is negative
            days = f"(d.day + {calendar.turns << _LENGTH_BITS * 3}) % {calendar.turns}"
            sides[timed] = Side(days, calendar.turn)
            yield DaySegment(scoped, dated, tuple(sides))
        elif grouping.granularity is Granularity.DAY:
            sides[timed] = Side("d.day", calendar.midnight)
            yield DaySegment(scoped, dated, tuple(sides))
        else:
            points, turns = self._buckets(calendar)
            sides[timed] = Side("b.value", points.__getitem__)
            yield DaySegment(scoped, where, tuple(sides), tuple(points))
            yield from self._of_split_days(groupings, timed, calendar, turns)

    def _lines(self, since: int, until: int) -> Where:
        """The lines of a stretch of time."""
        column = self._bounds.column
        assert column is not None  # noqa: S101  # without a time there is no stretch of it
        name, dialect = f"r.{column.name}", self._reader.session.dialect
        lines = self._place.matching(self._conditions).yielding(dialect, name)
        return lines & Where((f"{name} >= ?", f"{name} < ?"), (since, until))

    def _buckets(self, calendar: Calendar) -> tuple[dict[int, int], dict[int, int]]:
        """The starts of buckets by their stretch of whole days, and the instants at which buckets
        end within a day, by day.
        """
        where = Where(("d.facet = 0", "d.day > ?"), (FAR_PAST,)) & self._bounds.where
        days_known = DaySegment(self._place, where)
        ((first, last),) = self._reader.lines(
            self._place.source, days_known.select("min(d.day), max(d.day)")
        )
        points: dict[int, int] = {}
        turns: dict[int, int] = {}
        day, unit, is_day = first, DAY_NANOSECONDS, self._bounds.unit == 1
        while first is not None and day <= last:
            local = day if is_day else calendar.local_day(day * unit)
            turn = calendar.next_day(local) * unit if is_day else calendar.day_end(local)
            if turn // unit > day:
                points[_stretch(day, turn // unit - day)] = calendar.day_start(local)
            if turn % unit:
                turns[turn // unit] = turn
            day = -(-turn // unit)
        if not turns:
            return points, turns
        listed = ", ".join(map(str, turns))
        days_held = days_known.select("d.day", more=Where((f"d.day IN ({listed})",)))
        return points, {
            held_day: turns[held_day]
            for (held_day,) in self._reader.lines(self._place.source, days_held)
        }

    def _of_split_days(
        self,
        groupings: Sequence[Grouping],
        timed: int,
        calendar: Calendar,
        turns: Mapping[int, int],
    ) -> Iterator[Segment]:
        """The lines of days in which a bucket ends, which it does at an instant of `turns`."""
        sides = [plain_side(self._place, grouping) for grouping in groupings] if turns else []
        for day, turn in turns.items():
            begin, end = day * DAY_NANOSECONDS, (day + 1) * DAY_NANOSECONDS
            for since, until in ((begin, turn), (turn, end)):
                sides[timed] = Side("NULL", constant(calendar.start(since, ValueKind.INSTANT)))
                yield Segment(self._place, self._lines(since, until), tuple(sides))


class GroupSegment(SummedSegment, frozen=True, kw_only=True):
    """Rows of groups of one field; `lines` are what they stand for."""

    letter = "g"
    lines: Segment
    kept: Grouped

    def texts(self, number: int, field: str, ask: Asking) -> list[Line]:
        """From the rows, where they hold all of each."""
        lines = ask(self, "d.label" if field == self.kept.label else "d.mark")
        if any(text == LONG_TEXT for _, text, _ in lines):
            return self.lines.texts(number, field, ask)
        side = self.sides[number]
        return [(side.point_of(value), _text(text), count) for value, text, count in lines]

    @property
    def of_whole_strings(self) -> Segment:
        """Rows know strings as columns do."""
        return self.lines.of_whole_strings


def _group_segment(
    scoped: ScopedSource, conditions: Sequence[Condition], groupings: Sequence[Grouping]
) -> GroupSegment | None:
    """All records of a source in the groups of one string, perhaps by connection, too; `None`
    where rows cannot tell that.

    Without label and mark in sight, how long it takes would tell how many of them there are.
    """
    by_field = [grouping for grouping in groupings if grouping.field is not None]
    if conditions or not scoped.is_whole or len(by_field) != 1:
        return None
    [grouping] = by_field
    for number, grouped in enumerate(scoped.compiler.layout.grouped):
        stored_grouping = Grouping(
            grouped.field, ValueKind.STRING, label_field=grouped.label, mark_field=grouped.mark
        )
        if grouping == stored_grouping:
            lines = Segment(
                scoped, scoped.visible(), tuple(plain_side(scoped, n) for n in groupings)
            )
            value = Side("d.value", _text, found_of=lambda point: f"{TEXT}{point}")
            sides = [value if side.sql != "NULL" else side for side in lines.sides]
            where = Where(("d.field = ?",), (number,))
            return GroupSegment(scoped, where, tuple(sides), lines=lines, kept=grouped)
    return None


def _text(value: str) -> str | None:
    return None if value == NO_TEXT else value.removeprefix(TEXT)
