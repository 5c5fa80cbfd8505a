"""The order of groups and what is said of those not returned.  Source: RS contract 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from personal_server.domain.criteria import Metric
from personal_server.domain.values import (
    MAX_INTEGER,
    Comparable,
    ValueKind,
    exact_sum,
    render_sum,
)
from personal_server.planning.plans import AggregatePlan, Aggregation, Group


@dataclass(frozen=True, slots=True)
class Tally:
    """A group, and the exact number it is ranked by (`None`: null)."""

    group: Group
    rank: Any


def arrange(plan: AggregatePlan, record_count: int, tallies: Sequence[Tally]) -> Aggregation:
    """Put all groups in order, keep what is returned, and sum up the rest."""
    timed = plan.grouping is not None and plan.grouping.granularity is not None
    kept = _newest(plan, tallies) if timed else sorted(tallies, key=_place(plan))[: plan.limit]
    groups = tuple(each.group for each in kept)
    shown = {id(each) for each in kept}
    rest = [each for each in tallies if id(each) not in shown]
    other = None
    if plan.metric is Metric.SUM:
        other = render_sum(exact_sum(Decimal(each.rank) for each in rest))
    return Aggregation(
        record_count,
        groups=groups,
        group_count=len(tallies),
        other_count=sum(each.group.count for each in rest),
        other_value=other,
    )


def newest(plan: AggregatePlan, record_count: int, counts: Mapping[Any, int]) -> Aggregation:
    """The same for counted time buckets, of which there may be very many: key → count."""
    starts = sorted(key for key in counts if key is not None)[-plan.limit :]
    shown = [*starts, *([None] if None in counts else [])]
    groups = tuple(Group(key, counts[key]) for key in shown)
    return Aggregation(
        record_count,
        groups=groups,
        group_count=len(counts),
        other_count=sum(counts.values()) - sum(group.count for group in groups),
    )


def plain_value(point: Comparable, stored: object, kind: ValueKind) -> object:
    """How a group key or extreme is shown: as stored, whole numbers as integers."""
    if kind not in (ValueKind.INTEGER, ValueKind.NUMBER):
        return stored
    is_whole = isinstance(point, float) and point.is_integer() and abs(point) <= MAX_INTEGER
    return int(point) if is_whole else point


def _newest(plan: AggregatePlan, tallies: Sequence[Tally]) -> list[Tally]:
    """The newest buckets ascending, then the null group, which does not count."""
    buckets = sorted((t for t in tallies if t.group.key is not None), key=_start)
    return buckets[-plan.limit :] + [t for t in tallies if t.group.key is None]


def _start(tally: Tally) -> Any:
    return tally.group.key


def _place(plan: AggregatePlan) -> Any:
    """By rank (descending, `min` ascending, nulls last), then key text, the null group last."""
    sign = 1 if plan.metric is Metric.MIN else -1

    def place(tally: Tally) -> tuple[bool, Any, bool, bytes]:
        key, rank = tally.group.key, tally.rank
        return (rank is None, 0 if rank is None else sign * rank, key is None, orjson.dumps(key))

    return place
