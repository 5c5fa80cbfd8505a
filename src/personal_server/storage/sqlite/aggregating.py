"""Aggregates from SQLite: figures per group and source in SQL, merged and ordered here.

Rule: everything is exact.  Time buckets are integer arithmetic within stretches of constant UTC
offset, so that no line needs a call-back.
Source: RS contract 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import orjson

from personal_server.domain.criteria import Grouping, Metric
from personal_server.domain.values import (
    COMPARED_CODE_POINTS,
    Comparable,
    ValueKind,
    render_day,
    render_sum,
)
from personal_server.planning.plans import AggregatePlan, Aggregation, Group
from personal_server.storage.buckets import Calendar
from personal_server.storage.grouping import Tally, arrange, plain_value
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.layout import Column
from personal_server.storage.sqlite.figures import count_place, extreme
from personal_server.storage.sqlite.functions import bound
from personal_server.storage.sqlite.measuring import Figures, absorb, measured, unscaled
from personal_server.storage.sqlite.reading import Place, Reader

Key = Comparable | None
FAR_SLACK_NS = 50_000.0


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines of one source, and how they fall into groups: `key_of` turns `sql` into the key."""

    place: Place
    sql: str
    where: Where
    key_of: Callable[[Any], Key] = lambda found: found


def aggregate(reader: Reader, plan: AggregatePlan) -> Aggregation:
    """One metric over all sources, perhaps grouped."""
    places = reader.places(plan.scopes)
    total = sum(count_place(reader, place, plan.conditions) for place in places)
    asked = _Aggregate(reader, plan, places)
    if plan.grouping is None:
        return Aggregation(total, value=total if plan.metric is Metric.COUNT else asked.alone())
    return asked.grouped(plan.grouping, total)


class _Aggregate:
    """One aggregate of one snapshot."""

    def __init__(self, reader: Reader, plan: AggregatePlan, places: Sequence[Place]) -> None:
        self._reader = reader
        self._plan = plan
        self._places = places

    def alone(self) -> object:
        """The metric over everything."""
        if self._plan.metric is Metric.COUNT_DISTINCT:
            return self._distinct_count()
        segments = [Segment(p, "NULL", p.matching(self._plan.conditions)) for p in self._places]
        figures = self._figures(segments).get(None, Figures())
        return self._shown(figures, segments, None)

    def grouped(self, grouping: Grouping, total: int) -> Aggregation:
        """All groups, in order; stored texts are looked up for those that are returned."""
        segments = list(self._segments(grouping))
        figures = self._figures(segments)
        shown = self._shown_keys(grouping, segments, figures)
        by_shown: dict[Any, Key] = {shown[key]: key for key in figures}
        tallies = [
            Tally(Group(shown[key], each.count, self._rank(each)), self._rank(each))
            for key, each in figures.items()
        ]
        answer = arrange(self._plan, total, tallies)
        groups: list[Group] = []
        for group in answer.groups:
            key = by_shown[group.key]
            value = self._shown(figures[key], segments, key)
            groups.append(replace(group, value=value))
        return replace(answer, groups=tuple(groups))

    # Segments ---------------------------------------------------------------------------------
    def _segments(self, grouping: Grouping) -> Iterator[Segment]:
        for place in self._places:
            where = place.matching(self._plan.conditions)
            column = place.compiler.layout.column(grouping.field, grouping.kind)
            if column is None:
                yield Segment(place, "NULL", where)
            elif grouping.granularity is None:
                yield Segment(place, self._value_of(place, column), where)
            else:
                yield from self._time_segments(place, column, where, grouping)

    def _time_segments(
        self, place: Place, column: Column, where: Where, grouping: Grouping
    ) -> Iterator[Segment]:
        assert grouping.granularity is not None  # noqa: S101  # only called for time groups
        name = f"r.{column.name}"
        calendar = Calendar(grouping.time_zone, grouping.granularity)
        yield Segment(place, "NULL", where & Where((f"{name} IS NULL",)))
        if column.kind is ValueKind.DATE:
            yield Segment(place, name, where & Where((f"{name} IS NOT NULL",)), calendar.day_start)
            return
        reached: Any = extreme(self._reader, place, column, where, highest=False)
        while reached is not None:
            since, until = calendar.period(int(reached))
            bounds = Where((f"{name} >= ?", f"{name} < ?"), (bound(since), bound(until)))
            yield _period_segment(place, name, where & bounds, calendar, int(reached))
            later = where & Where((f"{name} >= ?",), (bound(until),))
            reached = extreme(self._reader, place, column, later, highest=False)

    def _value_of(self, place: Place, column: Column) -> str:
        """The value of a column as it is equal: long strings are looked up whole."""
        name = f"r.{column.name}"
        if column.kind is not ValueKind.STRING:
            return name
        long = Where((f"length({name}) >= {COMPARED_CODE_POINTS}",))
        has_long = self._reader.value(place.compiler.select("1", long, " LIMIT 1"))
        return place.compiler.whole_string(column) if has_long else name

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
            what = f"DISTINCT {segment.sql}, {self._value_of(segment.place, column)}"
            present = Where((f"{name} IS NOT NULL",))
            for key, value in self._lines(segment, what, "", present):
                found[segment.key_of(key)].distinct.add(value)

    def _distinct_count(self) -> int:
        parts: list[str] = []
        params: list[Any] = []
        for place in self._places:
            column = self._measured_column(place)
            if column is not None:
                present = Where((f"r.{column.name} IS NOT NULL",))
                where = place.matching(self._plan.conditions) & present
                part = place.compiler.select(f"DISTINCT {self._value_of(place, column)}", where)
                parts.append(part.sql)
                params += part.params
        if not parts:
            return 0
        sql = f"SELECT count(*) FROM ({' UNION '.join(parts)})"  # noqa: S608
        return self._reader.session.value(sql, params)

    def _measured_column(self, place: Place) -> Column | None:
        return place.compiler.layout.column(self._plan.field, self._plan.field_kind)

    def _lines(
        self, segment: Segment, what: str, tail: str, more: Where | None = None
    ) -> list[Any]:
        where = segment.where if more is None else segment.where & more
        return self._reader.lines(segment.place.compiler.select(what, where, tail))

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
            return _plain(point, kind)
        firsts: list[tuple[str, str, object]] = []
        for segment in segments:
            column = self._measured_column(segment.place)
            if column is not None:
                equal = segment.place.compiler.equal(column, point)
                lines = self._lines(segment, f"{segment.sql}, r.k", " ORDER BY r.k", equal)
                keys = [k for found, k in lines if segment.key_of(found) == key]
                firsts += self._stored(segment.place, keys[:1], name)
        return min(firsts, key=lambda first: first[:2])[2]

    def _shown_keys(
        self, grouping: Grouping, segments: Sequence[Segment], figures: dict[Key, Figures]
    ) -> dict[Key, object]:
        """Keys as they are answered; instants in the text of their first record."""
        if grouping.granularity is not None:
            return {key: key for key in figures}
        if grouping.kind is not ValueKind.INSTANT:
            return {k: None if k is None else _plain(k, grouping.kind) for k in figures}
        firsts: dict[Key, tuple[str, str, object]] = {}
        for segment in segments:
            lines = self._lines(segment, f"{segment.sql}, min(r.k)", " GROUP BY 1")
            keys = {record: key for key, record in lines if key is not None}
            for first in self._stored(segment.place, list(keys), grouping.field):
                key = keys[first[0]]
                firsts[key] = min(firsts.get(key, first), first, key=lambda each: each[:2])
        return {key: None if key is None else firsts[key][2] for key in figures}

    def _stored(
        self, place: Place, keys: Sequence[str], field: str
    ) -> list[tuple[str, str, object]]:
        """(key, connection, stored value) of records."""
        where = Where(
            ("r.k IN (SELECT value FROM json_each(?))",), (orjson.dumps(list(keys)).decode(),)
        )
        rows = self._reader.rows(place, where)
        return [(row.key, row.connection_id, row.data[field]) for row in rows]


def _period_segment(
    place: Place, name: str, where: Where, calendar: Calendar, inside_ns: int
) -> Segment:
    """Lines of one stretch of constant offset, by the number of their local unit.

    `inside_ns` is the first instant among them, so that no number is negative.
    """
    unit, offset = calendar.unit_ns, calendar.offset_ns(inside_ns)
    since, _ = calendar.period(inside_ns)
    base_unit = (inside_ns + offset) // unit
    base = base_unit * unit - offset

    def start(found: int) -> int:
        local = base_unit + found
        if not calendar.is_fine:
            return calendar.day_start(local)
        return calendar.fine_start(local, max(local * unit - offset, since))

    # instants beyond 64 bits are doubles, true to some microseconds: they are not cut short
    slack = f" + {FAR_SLACK_NS}" if not -(2**63) <= inside_ns < 2**63 else ""
    divided = f"CAST(({name} - {bound(base)}{slack}) / {bound(unit)} AS INTEGER)"
    return Segment(place, divided, where, start)


def _plain(point: Comparable, kind: ValueKind) -> object:
    if kind is ValueKind.DATE and isinstance(point, int):
        return render_day(point)
    if kind is ValueKind.BOOLEAN:
        return bool(point)
    return plain_value(point, point, kind)
