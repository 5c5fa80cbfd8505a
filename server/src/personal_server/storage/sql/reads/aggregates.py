"""Aggregates: figures per group and source in SQL, merged and ordered here.

Rule: everything is exact (`measures`).
Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.declared_units import is_over_values
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.values import (
    COMPARED_CODE_POINTS,
    ValueKind,
    render_number,
    render_sum,
)
from personal_server.enforcement.plans import AggregatePlan
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.storage.group_rules import GroupTally, arrange, labelled, newest, step_width
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.group_figures import Figures
from personal_server.storage.sql.layout import Column
from personal_server.storage.sql.measures import absorb, unscaled
from personal_server.storage.sql.reads.figures import count_place, lines_with, plain_point
from personal_server.storage.sql.reads.segments import (
    Key,
    Segment,
    Side,
    is_cut,
    segments,
    whole_lines,
)
from personal_server.storage.sql.reads.summary_segments import days_of
from personal_server.storage.sql.source_tables import Reader, ScopedSource
from personal_server.storage.tables import ColumnKind

# So many pairs of the strings of two lists are seconds of Python, where no deadline ends a read: a
# hostile record of two lists can make as many as its length squared.
MOST_PAIRS = 1_000_000


def aggregate(reader: Reader, plan: AggregatePlan) -> Aggregation:
    """One metric over all sources, perhaps grouped."""
    return _Aggregate(reader, plan).answer()


class MatchingLines(NamedTuple):
    """A source, which of its lines match, and how many they are."""

    source: ScopedSource
    where: Where
    records: int


class _Aggregate:
    """One aggregate of one snapshot."""

    def __init__(self, reader: Reader, plan: AggregatePlan) -> None:
        self._reader = reader
        self._plan = plan
        self._places = [self._place(each) for each in reader.places(plan.scopes)]
        self._total = sum(lines.records for lines in self._places)
        self._pairs = 0

    def answer(self) -> Aggregation:
        """The metric over everything, or groups in order."""
        if self._plan.groupings:
            return self._grouped()
        if self._plan.metric is Metric.COUNT:
            return Aggregation(self._total, value=self._total)
        if self._plan.metric is Metric.COUNT_DISTINCT:
            return Aggregation(self._total, value=self._distinct_count())
        if self._plan.metric in (Metric.MIN, Metric.MAX):
            parts = [Segment(place.source, place.where) for place in self._places]
            extreme = self._shown_extreme(self._extreme(parts), parts, ())
            return Aggregation(self._total, value=extreme)
        parts = [segment for place in self._places for segment in self._segments(place, ())]
        figures = self._figures(parts).get((), Figures())
        shown = self._shown(figures, parts, ())
        return Aggregation(self._total, value=shown, value_count=self._value_count(figures))

    def _place(self, source: ScopedSource) -> MatchingLines:
        conditions = self._plan.conditions
        where = source.matching(conditions)
        if self._plan.words is None:
            return MatchingLines(source, where, count_place(self._reader, source, conditions))
        where &= lines_with(self._reader, source, self._plan.words)
        self._reader.recall(source, conditions)
        found: Any = self._reader.value(source.compiler.select("count(*)", where))
        return MatchingLines(source, where, int(found))

    def _value_count(self, figures: Figures) -> int | None:
        """How many values a sum, a mean or a percentile is over; other metrics do not say it."""
        return figures.value_count if is_over_values(self._plan.metric) else None

    def _segments(self, lines: MatchingLines, groupings: Sequence[Grouping]) -> Iterable[Segment]:
        """All matching lines of a source, from its summaries where these can tell the figure."""
        plan = self._plan
        by_lines = bool(plan.words) or any(each.days is not None for each in groupings)
        days = None if by_lines else days_of(self._reader, lines.source, plan.conditions)
        if days is not None:
            column = self._measured_column(lines.source)
            found = days.segments(groupings, plan.metric, column)
            if found is not None:
                return found
        # with words, each range of the index would look for the words again
        count = 0 if plan.words else lines.records
        return segments(self._reader, lines.source, lines.where, count, groupings)

    def _grouped(self) -> Aggregation:
        """All groups, in order; stored texts are looked up for those that are returned."""
        plan, groupings = self._plan, self._stepped()
        parts = [segment for place in self._places for segment in self._segments(place, groupings)]
        is_line = plan.time_line is not None and len(groupings) == 1 and plan.sort is None
        if is_line and plan.metric is Metric.COUNT:
            return newest(plan, self._total, self._counts(parts))
        figures = self._figures(parts)
        if any(is_cut(point) for key in figures for point in key):
            parts = [part.of_whole_strings for part in parts]
            figures = self._figures(parts)
        shown = [
            self._shown_points(number, grouping, parts, {key[number] for key in figures})
            for number, grouping in enumerate(groupings)
        ]
        tallies: list[GroupTally] = []
        for key, each in figures.items():
            keys = tuple(known[point] for known, point in zip(shown, key, strict=True))
            tallies.append(GroupTally(Group(keys, each.count), self._rank(each), key))
        answer = arrange(plan, self._total, tallies)
        key_by_group = {id(tally.group): tally.points for tally in tallies}
        returned = [key_by_group[id(group)] for group in answer.groups]
        labels = [
            self._labels(number, grouping, parts, {key[number] for key in returned})
            for number, grouping in enumerate(groupings)
        ]
        groups = [
            replace(
                group,
                value=self._shown(figures[key], parts, key),
                value_count=self._value_count(figures[key]),
                labels=tuple(known.get(point) for known, point in zip(labels, key, strict=True)),
            )
            for group, key in zip(answer.groups, returned, strict=True)
        ]
        width = next((each.bin_width for each in groupings if each.bin_width is not None), None)
        return replace(answer, groups=tuple(groups), bin_width=width)

    def _stepped(self) -> list[Grouping]:
        """The groupings, with the width of steps that are as wide as the numbers ask for."""
        return [
            replace(each, bin_width=self._width(each)) if each.bin_width == 0 else each
            for each in self._plan.groupings
        ]

    def _width(self, grouping: Grouping) -> Decimal:
        found = (
            self._reader.extreme(place.source, column, place.where, highest=highest)
            for place in self._places
            if (column := place.source.compiler.layout.column(grouping.field, grouping.kind))
            for highest in (False, True)
        )
        known: list[Any] = [each for each in found if each is not None]
        return step_width(min(known, default=0), max(known, default=0), grouping.kind)

    # Figures ----------------------------------------------------------------------------------
    def _figures(self, parts: Sequence[Segment]) -> dict[Key, Figures]:
        found: dict[Key, Figures] = {}
        dialect = self._reader.session.dialect
        for segment in parts:
            column = self._measured_column(segment.place)
            sides, keys_of = len(segment.sides), self._keys_of(segment)
            what = segment.columns(segment.figures(self._plan.metric, column, dialect))
            for line in self._lines(segment, what, segment.by_group):
                count, *values = line[sides:]
                for key in keys_of(line):
                    group = found.get(key)
                    if group is None:
                        group = found[key] = Figures()
                    absorb(group, self._plan.metric, count, values)
            if column is not None and not segment.is_summed:
                self._complete(segment, column, found)
        return found

    def _keys_of(self, segment: Segment) -> Callable[[Line], Iterable[Key]]:
        """What tells the groups that a line is in, settled before there are thousands of lines."""
        if segment.has_lists:
            return partial(self._pairs_of, segment)
        if len(segment.sides) == 1:
            point_of = segment.sides[0].point_of
            return lambda line: ((point_of(line[0]),),)
        return lambda line: (segment.key_of(line),)

    def _pairs_of(self, segment: Segment, line: Line) -> Iterable[Key]:
        """A line whose two lists have three and four strings is in twelve.

        Raises: QueryTimeout.
        """
        points = segment.points_of(line)
        if len(points) > 1 and min(map(len, points)) > 1:
            self._pairs += prod(map(len, points))
        if self._pairs > MOST_PAIRS:
            raise QueryTimeout(
                "The two lists make too many pairs. Group by one of them, or use filters.",
                retry_after_seconds=1,
            )
        return product(*points)

    def _counts(self, parts: Sequence[Segment]) -> dict[Any, int]:
        found: dict[Any, int] = {}
        for part in parts:
            (side,) = part.sides
            what = part.columns(part.figures(Metric.COUNT, None, self._reader.session.dialect))
            for unit, count in self._lines(part, what, part.by_group):
                key = side.point_of(unit)
                found[key] = found.get(key, 0) + count
        return found

    def _complete(self, segment: Segment, column: Column, found: dict[Key, Figures]) -> None:
        """What one pass of figures cannot give: odd parts of sums, distinct values, and ranks."""
        name, metric, sides = f"r.{column.name}", self._plan.metric, len(segment.sides)
        is_sum, keys_of = metric in (Metric.SUM, Metric.AVG), self._keys_of(segment)
        odd = unscaled(name, column.kind, self._reader.session.dialect) if is_sum else None
        if odd is not None:
            for line in self._lines(segment, segment.columns(name), "", Where((odd,))):
                for key in keys_of(line):
                    found[key].add(Decimal(repr(line[-1])))
        present = Where((f"{name} IS NOT NULL",))
        if metric is Metric.COUNT_DISTINCT:

            def distinct(value: str) -> list[Line]:
                return self._lines(segment, f"DISTINCT {segment.columns(value)}", "", present)

            for line in whole_lines(segment.place, column.field, column.kind, distinct):
                for key in keys_of(line):
                    found[key].note(line[-1], 1)
        if metric.percent is not None:
            by_value = replace(segment, sides=(*segment.sides, Side(name)))
            what = by_value.columns("count(*)")
            of_sides = dict[tuple[Any, ...], list[Figures]]()  # which are those of many lines
            for line in self._lines(by_value, what, by_value.by_group, present):
                figures = of_sides.get(line[:sides])
                if figures is None or segment.has_lists:  # whose pairs are counted
                    figures = [found[key] for key in keys_of(line)]
                    of_sides[line[:sides]] = figures
                for each in figures:
                    each.note(line[sides], line[-1])

    def _extreme(self, parts: Sequence[Segment]) -> Any:
        highest = self._plan.metric is Metric.MAX
        found: list[Any] = []
        for part in parts:
            column = self._measured_column(part.place)
            if column is not None:
                found.append(self._reader.extreme(part.place, column, part.where, highest=highest))
        known = [each for each in found if each is not None]
        return (max if highest else min)(known, default=None)

    def _distinct_count(self) -> int:
        count, has_cut = self._counted_values(whole=False)
        return self._counted_values(whole=True)[0] if has_cut else count

    def _counted_values(self, *, whole: bool) -> tuple[int, bool]:
        """How many values there are, and whether any may be the beginning of several."""
        parts: list[str] = []
        params: list[Any] = []
        for place in self._places:
            column, compiler = self._measured_column(place.source), place.source.compiler
            if column is not None:
                name = f"r.{column.name}"
                value = compiler.whole_string(column) if whole else name
                where = place.where & Where((f"{name} IS NOT NULL",))
                part = compiler.select(f"DISTINCT {value} AS value", where)
                parts.append(part.sql)
                params += part.params
        if not parts:
            return 0, False
        is_text = self._plan.field_kind is ValueKind.STRING and not whole
        longest = "max(length(value))" if is_text else "NULL"
        sql = f"SELECT count(*), {longest} FROM ({' UNION '.join(parts)}) AS found"  # noqa: S608
        ((count, length),) = self._reader.session.rows(sql, params)
        return count, (length or 0) >= COMPARED_CODE_POINTS

    def _measured_column(self, source: ScopedSource) -> Column | None:
        return source.compiler.layout.column(self._plan.field, self._plan.field_kind)

    def _lines(
        self, segment: Segment, what: str, tail: str, more: Where | None = None
    ) -> list[Any]:
        return self._reader.lines(segment.place.source, segment.select(what, tail, more))

    # What is shown ----------------------------------------------------------------------------
    def _rank(self, figures: Figures) -> Any:
        metric = self._plan.metric
        match metric:
            case Metric.COUNT:
                return figures.count
            case Metric.SUM:
                return figures.total
            case Metric.AVG:
                return figures.average
            case Metric.MEDIAN:
                return figures.median
            case Metric.COUNT_DISTINCT:
                return len(figures.values or ())
            case _ if metric.percent is not None:
                return figures.percentile(metric.percent)
            case _:
                return figures.extreme

    def _shown(self, figures: Figures, parts: Sequence[Segment], key: Key) -> object:
        """The value of a group as it is answered."""
        metric, rank = self._plan.metric, self._rank(figures)
        match metric:
            case Metric.COUNT:
                return None
            case Metric.SUM:
                return render_sum(figures.total)
            case Metric.MIN | Metric.MAX:
                return self._shown_extreme(rank, parts, key)
            case _ if isinstance(rank, Fraction):
                return render_number(rank)
            case Metric.COUNT_DISTINCT:
                return rank
            case _:
                return None if rank is None else plain_point(rank, ValueKind.NUMBER)

    def _shown_extreme(self, point: Any, parts: Sequence[Segment], key: Key) -> object:
        kind, name = self._plan.field_kind, self._plan.field
        if point is None or kind is None or name is None:
            return None
        if kind is not ValueKind.INSTANT:
            return plain_point(point, kind)
        firsts: list[tuple[str, str, object]] = []
        for segment in parts:
            column = self._measured_column(segment.place)
            if column is not None:
                equal = segment.place.compiler.equal(column, point)
                lines = self._lines(segment, segment.columns("r.k"), " ORDER BY r.k", equal)
                keys = [line[-1] for line in lines if _is_in(segment.points_of(line), key)]
                firsts += self._stored(segment.place, keys[:1], name)
        if not firsts:
            return plain_point(point, kind)
        return min(firsts, key=lambda first: first[:2])[2]

    def _shown_points(
        self, number: int, grouping: Grouping, parts: Sequence[Segment], points: Collection[Any]
    ) -> dict[Any, object]:
        """The keys of a side as they are answered; instants in the text of their first record."""
        plain = {point: _shown_point(grouping, point) for point in points}
        if grouping.granularity is not None or grouping.kind is not ValueKind.INSTANT:
            return plain
        name = grouping.field or ""
        firsts: dict[Any, tuple[str, str, object]] = {}
        for segment in parts:
            side = segment.sides[number]
            lines = self._lines(segment, f"{side.sql}, min(r.k)", " GROUP BY 1")
            keys = {record: point for point, record in lines if point is not None}
            for first in self._stored(segment.place, list(keys), name):
                point = keys[first[0]]
                firsts[point] = min(firsts.get(point, first), first, key=lambda each: each[:2])
        return plain | {point: stored for point, (_, _, stored) in firsts.items()}

    def _labels(
        self, number: int, grouping: Grouping, parts: Sequence[Segment], points: Collection[Any]
    ) -> dict[Any, str]:
        """How people see the points of a side: as most of their records say."""
        texts = self._said(number, grouping.label_field, parts, points)
        marks = self._said(number, grouping.mark_field, parts, points)
        found: dict[Any, str] = {}
        for point in texts.keys() | marks.keys():
            known = texts.get(point, Counter())
            counts = {text: count for text, count in known.items() if text is not None}
            first = min(counts, key=lambda text: (-counts[text], text), default=None)
            label = None if point is None else first
            seen = labelled(point, label, marks.get(point, ()))
            if seen is not None:
                found[point] = seen
        return found

    def _said(
        self, number: int, name: str | None, parts: Sequence[Segment], points: Collection[Any]
    ) -> dict[Any, Counter[str | None]]:
        """Of each point of a side, how many of its records hold which string of a field."""
        if name is None or not points:
            return {}
        counts: dict[Any, Counter[str | None]] = {point: Counter() for point in points}
        dialect = self._reader.session.dialect

        def counted(segment: Segment, text: str) -> list[Line]:
            side, count = segment.sides[number], segment.figures(Metric.COUNT, None, dialect)
            what = f"{side.sql}, {text}, {count}"
            return self._lines(segment, what, " GROUP BY 1, 2", self._among(side, points))

        for segment in parts:
            for point, text, count in segment.texts(number, name, counted):
                if point in counts:
                    counts[point][text] += count
        return counts

    def _among(self, side: Side, points: Collection[Any]) -> Where:
        """Lines of these points alone, where strings tell them; no line is found by its point."""
        if not all(isinstance(point, str) for point in points):
            return Where()
        dialect, found = self._reader.session.dialect, [side.found_of(point) for point in points]
        asked = f"{side.sql} IN {dialect.values('?', ColumnKind.TEXT)}"
        one_of = dialect.behind_index(dialect.unsteering(asked))
        return Where((one_of,), (orjson.dumps(found).decode(),))

    def _stored(
        self, source: ScopedSource, keys: Sequence[str], field: str
    ) -> list[tuple[str, str, object]]:
        """(key, connection, stored value) of records."""
        listed = self._reader.session.dialect.values("?", ColumnKind.TEXT)
        where = Where((f"r.k IN {listed}",), (orjson.dumps(list(keys)).decode(),))
        rows = self._reader.rows(source, where)
        return [(row.key, row.connection_id, row.data[field]) for row in rows]


def _is_in(points: Iterable[Sequence[Any]], key: Key) -> bool:
    """Whether a line with these points is in a group."""
    return all(point in those for those, point in zip(points, key, strict=False))


def _shown_point(grouping: Grouping, point: Any) -> object:
    """A point as it is answered, where no stored text is: starts and turns are rendered later."""
    is_made = grouping.field is None or grouping.granularity or grouping.bin_width is not None
    return point if point is None or is_made else plain_point(point, grouping.kind)
