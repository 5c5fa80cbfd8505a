"""Aggregates: figures per group and source in SQL, merged and ordered here.

Rule: everything is exact.  A sum in SQL is a sum of integers: doubles that are whole
ten-thousandths below 10^8 are summed as such, all others are added as decimals here.  No line needs
a call-back: time buckets that hold many lines are ranges of the index, others are integer
arithmetic within stretches of constant UTC offset.
Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import orjson

from personal_server.domain.criteria import Granularity, Grouping, Metric
from personal_server.domain.values import (
    COMPARED_CODE_POINTS,
    DAY_NANOSECONDS,
    Comparable,
    ValueKind,
    bound,
    exact_sum,
    render_sum,
)
from personal_server.enforcement.plans import AggregatePlan
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.storage.calendar import Calendar
from personal_server.storage.meaning import GroupTally, arrange, newest
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.figures import count_place, extreme, plain_point
from personal_server.storage.sql.layout import Column
from personal_server.storage.sql.source_tables import Reader, ScopedSource

# Measures: counts, exact sums, extremes, distinct values -----------------------------------------
_SCALE = 10_000
_HALF = 1 << 32


@dataclass(slots=True)
class Figures:
    """What is known of one group."""

    count: int = 0
    total: Decimal = Decimal(0)
    extreme: Comparable | None = None
    distinct: set[Comparable] = field(default_factory=set[Comparable])

    def add(self, number: Decimal) -> None:
        """One more part of the sum."""
        self.total = exact_sum((self.total, number))


def measured(metric: Metric, name: str, kind: ValueKind) -> str:
    """The columns that measure a metric over a group, after its count; begins with a comma."""
    match metric:
        case Metric.SUM if kind is ValueKind.INTEGER:
            return f", sum({name} >> 32), sum({name} & {_HALF - 1})"
        case Metric.SUM:
            return f", sum(CASE WHEN {_is_scaled(name)} THEN {_scaled(name)} END)"
        case Metric.MIN:
            return f", min({name})"
        case Metric.MAX:
            return f", max({name})"
        case _:
            return ""


def unscaled(name: str, kind: ValueKind) -> str | None:
    """Which values a sum in SQL leaves out; `None` if it takes all."""
    if kind is ValueKind.INTEGER:
        return None
    return f"{name} IS NOT NULL AND NOT ({_is_scaled(name)})"


def absorb(figures: Figures, metric: Metric, count: int, values: list[Any]) -> None:
    """Add a line of `measured` columns to a group."""
    figures.count += count
    match metric:
        case Metric.SUM if len(values) == 2:
            high, low = values
            figures.add(Decimal((high or 0) * _HALF + (low or 0)))
        case Metric.SUM:
            figures.add(Decimal(values[0] or 0) / _SCALE)
        case Metric.MIN | Metric.MAX:
            (value,) = values
            known = [each for each in (figures.extreme, value) if each is not None]
            pick: Any = min if metric is Metric.MIN else max
            figures.extreme = pick(known, default=None)
        case _:
            pass


def _scaled(name: str) -> str:
    return f"CAST(round({name} * {_SCALE}.0) AS INTEGER)"


def _is_scaled(name: str) -> str:
    return f"abs({name}) < 1e8 AND {_scaled(name)} / {_SCALE}.0 = {name}"


# Segments: how the lines of a source fall into groups --------------------------------------------
Key = Comparable | None
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


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines of one source, and how they fall into groups: `key_of` turns `sql` into the key."""

    place: ScopedSource
    sql: str
    where: Where
    key_of: Callable[[Any], Key] = lambda found: found


def value_of(reader: Reader, place: ScopedSource, column: Column) -> str:
    """The value of a column as it is equal: long strings are looked up whole."""
    name = f"r.{column.name}"
    if column.kind is not ValueKind.STRING:
        return name
    long = Where((f"length({name}) >= {COMPARED_CODE_POINTS}",))
    has_long = reader.value(place.compiler.select("1", long, " LIMIT 1"))
    return place.compiler.whole_string(column) if has_long else name


def segments(
    reader: Reader, place: ScopedSource, where: Where, count: int, grouping: Grouping
) -> Iterator[Segment]:
    """All matching lines of a source, `count` of them, each in one segment."""
    column = place.compiler.layout.column(grouping.field, grouping.kind)
    if column is None:
        yield Segment(place, "NULL", where)
    elif grouping.granularity is None:
        yield Segment(place, value_of(reader, place, column), where)
    else:
        calendar = Calendar(grouping.time_zone, grouping.granularity)
        timed = _Timed(reader, place, column, where, calendar)
        yield Segment(place, "NULL", where & Where((f"{timed.name} IS NULL",)))
        yield from timed.segments(count, _USUAL_DAYS.get(grouping.granularity))


class _Timed:
    """Lines of a source by the time buckets of a column."""

    def __init__(
        self, reader: Reader, place: ScopedSource, column: Column, where: Where, calendar: Calendar
    ) -> None:
        self._reader = reader
        self._place = place
        self._column = column
        self._where = where
        self._calendar = calendar
        self._dialect = reader.session.dialect
        self.name = f"r.{column.name}"

    def segments(self, count: int, bucket_days: int | None) -> Iterator[Segment]:
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
            yield Segment(self._place, self.name, present, self._calendar.day_start)
        else:
            yield from self._periods(low)

    def _ranges(self, low: Any) -> Iterator[Segment]:
        """One bucket after the other; empty ones are passed over."""
        calendar, is_day = self._calendar, self._column.kind is ValueKind.DATE
        while low is not None:
            day = low if is_day else calendar.local_day(int(low))
            start = calendar.day_start(day)
            since = calendar.first_day(day) if is_day else start
            until = calendar.next_day(day) if is_day else calendar.day_end(day)
            yield Segment(self._place, "NULL", self._between(since, until), _constant(start))
            low = self._extreme(self._from(until))

    def _periods(self, low: Any) -> Iterator[Segment]:
        """Stretches of constant offset, their lines by the number of their local unit."""
        while low is not None:
            since, until = self._calendar.period(int(low))
            yield self._period(int(low), since, until)
            low = self._extreme(self._from(until))

    def _period(self, inside_ns: int, since: int, until: int) -> Segment:
        """`inside_ns` is the first instant of the stretch, so that no number is negative."""
        calendar = self._calendar
        unit, offset = calendar.unit_ns, calendar.offset_ns(inside_ns)
        base_unit = (inside_ns + offset) // unit
        base = base_unit * unit - offset

        def start(found: int) -> int:
            if not calendar.is_fine:
                return calendar.day_start(base_unit + found)
            begun = base + found * unit
            return begun if begun >= since else calendar.fine_start(base_unit + found, since)

        # instants beyond 64 bits are doubles, true to some microseconds: they are not cut short
        slack = "" if -(2**63) <= inside_ns < 2**63 else f" + {FAR_SLACK_NS}"
        divided = f"CAST(({self.name} - {bound(base)}{slack}) / {bound(unit)} AS INTEGER)"
        return Segment(self._place, divided, self._between(since, until), start)

    def _between(self, since: int, until: int) -> Where:
        bounds = (f"{self.name} >= ?", f"{self.name} < ?")
        return self._where.yielding(self._dialect, self.name) & Where(
            bounds, (bound(since), bound(until))
        )

    def _from(self, since: int) -> Where:
        first = Where((f"{self.name} >= ?",), (bound(since),))
        return self._where.yielding(self._dialect, self.name, ">") & first

    def _extreme(self, where: Where, *, highest: bool = False) -> Any:
        return extreme(self._reader, self._place, self._column, where, highest=highest)


def _constant(start: int) -> Callable[[Any], Key]:
    return lambda _: start


def aggregate(reader: Reader, plan: AggregatePlan) -> Aggregation:
    """One metric over all sources, perhaps grouped."""
    places = reader.places(plan.scopes)
    counts = [count_place(reader, place, plan.conditions) for place in places]
    asked = _Aggregate(reader, plan, places)
    if plan.grouping is not None:
        return asked.grouped(plan.grouping, counts)
    total = sum(counts)
    return Aggregation(total, value=total if plan.metric is Metric.COUNT else asked.alone())


class _Aggregate:
    """One aggregate of one snapshot."""

    def __init__(self, reader: Reader, plan: AggregatePlan, places: Sequence[ScopedSource]) -> None:
        self._reader = reader
        self._plan = plan
        self._places = places

    def alone(self) -> object:
        """The metric over everything."""
        if self._plan.metric is Metric.COUNT_DISTINCT:
            return self._distinct_count()
        segments = [Segment(p, "NULL", p.matching(self._plan.conditions)) for p in self._places]
        if self._plan.metric is Metric.SUM:
            figures = self._figures(segments).get(None, Figures())
            return render_sum(figures.total)
        return self._shown_extreme(self._extreme(segments), segments, None)

    def grouped(self, grouping: Grouping, counts: Sequence[int]) -> Aggregation:
        """All groups, in order; stored texts are looked up for those that are returned."""
        conditions, total = self._plan.conditions, sum(counts)
        parts = [
            segment
            for place, count in zip(self._places, counts, strict=True)
            for segment in segments(
                self._reader, place, place.matching(conditions), count, grouping
            )
        ]
        if grouping.granularity is not None and self._plan.metric is Metric.COUNT:
            return newest(self._plan, total, self._counts(parts))
        figures = self._figures(parts)
        shown = self._shown_keys(grouping, parts, figures)
        by_shown: dict[Any, Key] = {shown[key]: key for key in figures}
        tallies = [
            GroupTally(Group(shown[key], each.count, self._rank(each)), self._rank(each))
            for key, each in figures.items()
        ]
        answer = arrange(self._plan, total, tallies)
        groups: list[Group] = []
        for group in answer.groups:
            key = by_shown[group.key]
            value = self._shown(figures[key], parts, key)
            groups.append(replace(group, value=value))
        return replace(answer, groups=tuple(groups))

    # Figures ----------------------------------------------------------------------------------
    def _figures(self, segments: Sequence[Segment]) -> dict[Key, Figures]:
        found: dict[Key, Figures] = {}
        for segment in segments:
            column = self._measured_column(segment.place)
            metrics = "" if column is None else self._measures(column)
            what = f"{segment.sql} AS g, count(*){metrics}"
            for key, count, *values in self._lines(segment, what, " GROUP BY 1"):
                figures = found.setdefault(segment.key_of(key), Figures())
                absorb(figures, self._plan.metric, count, values)
            if column is not None:
                self._complete(segment, column, found)
        return found

    def _counts(self, parts: Sequence[Segment]) -> dict[Key, int]:
        found: dict[Key, int] = {}
        for part in parts:
            for unit, count in self._lines(part, f"{part.sql} AS g, count(*)", " GROUP BY 1"):
                key = part.key_of(unit)
                found[key] = found.get(key, 0) + count
        return found

    def _measures(self, column: Column) -> str:
        return measured(self._plan.metric, f"r.{column.name}", column.kind)

    def _complete(self, segment: Segment, column: Column, found: dict[Key, Figures]) -> None:
        """What one pass of figures cannot give: odd parts of sums, and distinct values."""
        name = f"r.{column.name}"
        if self._plan.metric is Metric.SUM and (odd := unscaled(name, column.kind)):
            lines = self._lines(segment, f"{segment.sql}, {name}", "", Where((odd,)))
            for key, value in lines:
                found[segment.key_of(key)].add(Decimal(repr(value)))
        if self._plan.metric is Metric.COUNT_DISTINCT:
            what = f"DISTINCT {segment.sql}, {value_of(self._reader, segment.place, column)}"
            present = Where((f"{name} IS NOT NULL",))
            for key, value in self._lines(segment, what, "", present):
                found[segment.key_of(key)].distinct.add(value)

    def _extreme(self, parts: Sequence[Segment]) -> Key:
        highest = self._plan.metric is Metric.MAX
        found: list[Any] = []
        for part in parts:
            column = self._measured_column(part.place)
            if column is not None:
                found.append(extreme(self._reader, part.place, column, part.where, highest=highest))
        known = [each for each in found if each is not None]
        return (max if highest else min)(known, default=None)

    def _distinct_count(self) -> int:
        parts: list[str] = []
        params: list[Any] = []
        for place in self._places:
            column = self._measured_column(place)
            if column is not None:
                present = Where((f"r.{column.name} IS NOT NULL",))
                where = place.matching(self._plan.conditions) & present
                part = place.compiler.select(
                    f"DISTINCT {value_of(self._reader, place, column)}", where
                )
                parts.append(part.sql)
                params += part.params
        if not parts:
            return 0
        sql = f"SELECT count(*) FROM ({' UNION '.join(parts)})"  # noqa: S608
        return self._reader.session.value(sql, params)

    def _measured_column(self, place: ScopedSource) -> Column | None:
        return place.compiler.layout.column(self._plan.field, self._plan.field_kind)

    def _lines(
        self, segment: Segment, what: str, tail: str, more: Where | None = None
    ) -> list[Any]:
        where = segment.where if more is None else segment.where & more
        place = segment.place
        return self._reader.lines(place.source, place.compiler.select(what, where, tail))

    # What is shown ----------------------------------------------------------------------------
    def _rank(self, figures: Figures) -> Any:
        match self._plan.metric:
            case Metric.COUNT:
                return figures.count
            case Metric.SUM:
                return figures.total
            case Metric.COUNT_DISTINCT:
                return len(figures.distinct)
            case _:
                return figures.extreme

    def _shown(self, figures: Figures, segments: Sequence[Segment], key: Key) -> object:
        """The value of a group as it is answered."""
        match self._plan.metric:
            case Metric.COUNT:
                return None
            case Metric.SUM:
                return render_sum(figures.total)
            case Metric.COUNT_DISTINCT:
                return len(figures.distinct)
            case _:
                return self._shown_extreme(figures.extreme, segments, key)

    def _shown_extreme(self, point: Key, segments: Sequence[Segment], key: Key) -> object:
        kind, name = self._plan.field_kind, self._plan.field
        if point is None or kind is None or name is None:
            return None
        if kind is not ValueKind.INSTANT:
            return plain_point(point, kind)
        firsts: list[tuple[str, str, object]] = []
        for segment in segments:
            column = self._measured_column(segment.place)
            if column is not None:
                equal = segment.place.compiler.equal(column, point)
                lines = self._lines(segment, f"{segment.sql}, r.k", " ORDER BY r.k", equal)
                keys = [k for found, k in lines if segment.key_of(found) == key]
                firsts += self._stored(segment.place, keys[:1], name)
        if not firsts:
            return plain_point(point, kind)
        return min(firsts, key=lambda first: first[:2])[2]

    def _shown_keys(
        self, grouping: Grouping, segments: Sequence[Segment], figures: dict[Key, Figures]
    ) -> dict[Key, object]:
        """Keys as they are answered; instants in the text of their first record."""
        if grouping.granularity is not None:
            return {key: key for key in figures}
        if grouping.kind is not ValueKind.INSTANT:
            return {k: None if k is None else plain_point(k, grouping.kind) for k in figures}
        firsts: dict[Key, tuple[str, str, object]] = {}
        for segment in segments:
            lines = self._lines(segment, f"{segment.sql}, min(r.k)", " GROUP BY 1")
            keys = {record: key for key, record in lines if key is not None}
            for first in self._stored(segment.place, list(keys), grouping.field):
                key = keys[first[0]]
                firsts[key] = min(firsts.get(key, first), first, key=lambda each: each[:2])
        return {
            key: None
            if key is None
            else firsts[key][2]
            if key in firsts
            else plain_point(key, grouping.kind)
            for key in figures
        }

    def _stored(
        self, place: ScopedSource, keys: Sequence[str], field: str
    ) -> list[tuple[str, str, object]]:
        """(key, connection, stored value) of records."""
        listed = self._reader.session.dialect.values("?")
        where = Where((f"r.k IN {listed}",), (orjson.dumps(list(keys)).decode(),))
        rows = self._reader.rows(place, where)
        return [(row.key, row.connection_id, row.data[field]) for row in rows]
