"""Aggregates by their definition, over the rows of an answer.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from personal_server.domain.criteria import Metric
from personal_server.domain.record import StoredRecord
from personal_server.domain.values import Comparable, comparable, exact_sum, render_sum
from personal_server.enforcement.plans import AggregatePlan
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.storage.calendar import Calendar
from personal_server.storage.meaning import GroupTally, arrange, plain_value

Key = Comparable | None


def aggregate(plan: AggregatePlan, rows: Sequence[StoredRecord]) -> Aggregation:
    """`rows` are all matching rows, by (key, connection)."""
    if plan.grouping is None:
        return Aggregation(len(rows), value=_measure(plan, rows).value)
    groups: dict[Key, list[StoredRecord]] = {}
    key_of = _key_function(plan)
    for row in rows:
        groups.setdefault(key_of(row), []).append(row)
    tallies = [_tally(plan, key, members) for key, members in groups.items()]
    return arrange(plan, len(rows), tallies)


def _key_function(plan: AggregatePlan) -> Callable[[StoredRecord], Key]:
    grouping = plan.grouping
    assert grouping is not None  # only called for grouped plans
    if grouping.granularity is None:
        return lambda row: comparable(row.data.get(grouping.field), grouping.kind)
    calendar = Calendar(grouping.time_zone, grouping.granularity)

    def start(row: StoredRecord) -> Key:
        point = comparable(row.data.get(grouping.field), grouping.kind)
        return calendar.start(point, grouping.kind) if isinstance(point, int) else None

    return start


def _tally(plan: AggregatePlan, key: Key, members: Sequence[StoredRecord]) -> GroupTally:
    measured = _measure(plan, members)
    grouping = plan.grouping
    assert grouping is not None  # only called for grouped plans
    shown: object = key
    if key is not None and grouping.granularity is None:
        shown = plain_value(key, members[0].data[grouping.field], grouping.kind)
    return GroupTally(Group(shown, len(members), measured.value), measured.rank)


class _Measured:
    """A metric's value as shown, and as groups are ranked by it (`None`: null)."""

    def __init__(self, value: object, rank: Comparable | Decimal | None) -> None:
        self.value = value
        self.rank = rank


def _measure(plan: AggregatePlan, rows: Sequence[StoredRecord]) -> _Measured:
    if plan.metric is Metric.COUNT:
        return _Measured(None if plan.grouping else len(rows), len(rows))
    name, kind = plan.field, plan.field_kind
    assert name is not None and kind is not None  # noqa: PT018  # other metrics have a field
    found = [(p, row) for row in rows if (p := comparable(row.data.get(name), kind)) is not None]
    match plan.metric:
        case Metric.SUM:
            total = exact_sum(Decimal(repr(point)) for point, _ in found)
            return _Measured(render_sum(total), total)
        case Metric.COUNT_DISTINCT:
            distinct = len({point for point, _ in found})
            return _Measured(distinct, distinct)
        case _:
            if not found:
                return _Measured(None, None)
            pick = min if plan.metric is Metric.MIN else max
            point, row = pick(found, key=lambda each: each[0])
            return _Measured(plain_value(point, row.data[name], kind), point)
