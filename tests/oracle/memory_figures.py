"""Aggregates by their definition, over the rows of an answer.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

from msgspec.structs import replace

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import Grouping
from pdpp_kernel.declared_units import is_over_values
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import (
    DAY_NANOSECONDS,
    Comparable,
    ValueKind,
    comparable,
    exact_number,
    exact_sum,
    render_number,
    render_sum,
)
from personal_server.enforcement.plans import AggregatePlan
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.storage.calendar import Calendar
from personal_server.storage.group_rules import (
    GroupTally,
    arrange,
    labelled,
    listed_strings,
    plain_value,
    step_start,
    step_width,
)

Key = tuple[Any, ...]


def aggregate(plan: AggregatePlan, rows: Sequence[StoredRecord]) -> Aggregation:
    """`rows` are all matching rows, by (key, connection)."""
    if not plan.groupings:
        alone = _measure(plan, rows)
        return Aggregation(len(rows), value=alone.value, value_count=alone.value_count)
    groupings = [_stepped(grouping, rows) for grouping in plan.groupings]
    groups: dict[Key, list[StoredRecord]] = {}
    for row in rows:
        for key in product(*(_points(each, row) for each in groupings)):
            groups.setdefault(key, []).append(row)
    tallies = [_tally(plan, groupings, key, members, rows) for key, members in groups.items()]
    width = next((each.bin_width for each in groupings if each.bin_width is not None), None)
    answer = arrange(plan, len(rows), tallies)
    labelled = tuple(_labelled(groupings, tallies, group, rows) for group in answer.groups)
    return replace(answer, groups=labelled, bin_width=width)


def _stepped(grouping: Grouping, rows: Sequence[StoredRecord]) -> Grouping:
    """With the width of steps, where the values ask for it."""
    if grouping.bin_width != 0:
        return grouping
    known: list[Any] = [p for row in rows if (p := _value(grouping, row)) is not None]
    width = step_width(min(known, default=0), max(known, default=0), grouping.kind)
    return replace(grouping, bin_width=width)


def _value(grouping: Grouping, row: StoredRecord) -> Comparable | None:
    return comparable(row.data.get(grouping.field or ""), grouping.kind)


def _points(grouping: Grouping, row: StoredRecord) -> Sequence[Any]:
    """Where a row belongs: each string of a list, or one point."""
    if grouping.is_list:
        return listed_strings(row.data.get(grouping.field or "")) or (None,)
    return (_point(grouping, row),)


def _point(grouping: Grouping, row: StoredRecord) -> Any:
    if grouping.field is None:
        return row.connection_id
    value: Any = _value(grouping, row)
    if grouping.bin_width is not None:
        return step_start(value, Fraction(grouping.bin_width))
    if grouping.granularity is None or value is None:
        return value
    calendar = Calendar(grouping.time_zone, grouping.granularity)
    if grouping.days is not None and row.data.get(grouping.days.flag) is True:
        day = value // DAY_NANOSECONDS
        return None if calendar.is_fine else calendar.key(day, ValueKind.DATE)
    return calendar.key(value, grouping.kind)


def _tally(
    plan: AggregatePlan,
    groupings: Sequence[Grouping],
    key: Key,
    members: Sequence[StoredRecord],
    rows: Sequence[StoredRecord],
) -> GroupTally:
    measured = _measure(plan, members)
    shown = tuple(_shown(each, p, rows) for each, p in zip(groupings, key, strict=True))
    group = Group(shown, len(members), measured.value, value_count=measured.value_count)
    return GroupTally(group, measured.rank, key)


def _shown(grouping: Grouping, point: Any, rows: Sequence[StoredRecord]) -> object:
    """A point as it is answered: of several ways to write it that of the first record."""
    is_made = grouping.granularity is not None or grouping.bin_width is not None
    if point is None or grouping.field is None or grouping.is_list or is_made:
        return point
    first = next(row for row in rows if _point(grouping, row) == point)
    return plain_value(point, first.data[grouping.field], grouping.kind)


def _labelled(
    groupings: Sequence[Grouping],
    tallies: Sequence[GroupTally],
    group: Group,
    rows: Sequence[StoredRecord],
) -> Group:
    points = next(tally.points for tally in tallies if tally.group is group)
    labels = [_label(each, point, rows) for each, point in zip(groupings, points, strict=True)]
    return replace(group, labels=tuple(labels))


def _label(grouping: Grouping, point: Any, rows: Sequence[StoredRecord]) -> str | None:
    """What most records with that value say, whatever else the group is of."""
    data = [row.data for row in rows if _point(grouping, row) == point]
    marks = set[object]()
    if grouping.mark_field is not None:
        found = (each.get(grouping.mark_field) for each in data)
        marks = {mark if isinstance(mark, str) else None for mark in found}
    label = None
    if grouping.label_field is not None and point is not None:
        said = [text for each in data if isinstance(text := each.get(grouping.label_field), str)]
        label = min(said, key=lambda text: (-said.count(text), text), default=None)
    return labelled(point, label, marks)


class _Measured:
    """A metric's value as shown, and as groups are ranked by it (`None`: null)."""

    def __init__(self, value: object, rank: Any, value_count: int | None = None) -> None:
        self.value = value
        self.rank = rank
        self.value_count = value_count


def _measure(plan: AggregatePlan, rows: Sequence[StoredRecord]) -> _Measured:
    if plan.metric is Metric.COUNT:
        return _Measured(None if plan.groupings else len(rows), len(rows))
    name, kind = plan.field, plan.field_kind
    assert name is not None and kind is not None  # noqa: PT018  # other metrics have a field
    found = [(p, row) for row in rows if (p := comparable(row.data.get(name), kind)) is not None]
    points: list[Any] = sorted(point for point, _ in found)
    percent = plan.metric.percent
    match plan.metric:
        case Metric.AVG | Metric.MEDIAN if points:
            if plan.metric is Metric.MEDIAN:
                points = points[(len(points) - 1) // 2 : len(points) // 2 + 1]
            mean = sum(exact_number(point) for point in points) / Fraction(len(points))
            return _Measured(render_number(mean), mean, len(found))
        case _ if percent is not None and points:
            point = points[-(-percent * len(points) // 100) - 1]
            return _Measured(plain_value(point, point, kind), point, len(found))
        case Metric.SUM:
            total = exact_sum(Decimal(repr(point)) for point, _ in found)
            return _Measured(render_sum(total), total, len(found))
        case Metric.COUNT_DISTINCT:
            distinct = len({point for point, _ in found})
            return _Measured(distinct, distinct)
        case _:
            if not found or plan.metric not in (Metric.MIN, Metric.MAX):
                return _Measured(None, None, 0 if is_over_values(plan.metric) else None)
            pick = min if plan.metric is Metric.MIN else max
            point, row = pick(found, key=lambda each: each[0])
            return _Measured(plain_value(point, row.data[name], kind), point)
