"""Groups of records: how they are counted, ordered, cut off, labelled and stepped.  Pure.

Rule: a backend that computes them another way (indexes, SQL) must give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, cast

import orjson

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.criteria import GroupOrder
from pdpp_kernel.values import (
    MAX_INTEGER,
    Comparable,
    ValueKind,
    exact_number,
    exact_sum,
    render_sum,
    without_nul,
)
from personal_server.enforcement.plans import AggregatePlan
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.storage.row_rules import MOST_STEPS

# The mark of an author who is one; every other mark is shown.
A_PERSON = "person"


# Groups: their order, and what is said of those not returned (docs/contract/resource-server.md 10)
class GroupTally(NamedTuple):
    """A group, the exact number it is ranked by (`None`: null), and its keys as they compare."""

    group: Group
    rank: Any
    points: tuple[Any, ...]


Tallies = Sequence[GroupTally]


def arrange(plan: AggregatePlan, record_count: int, tallies: Tallies) -> Aggregation:
    """Put all groups in order, keep what is returned, and sum up the rest."""
    listed = _kept(plan, tallies)
    groups = tuple(tally.group for tally in listed)
    listed_ids = {id(tally) for tally in listed}
    others = [tally for tally in tallies if id(tally) not in listed_ids]
    other = None
    if plan.metric is Metric.SUM:
        other = render_sum(exact_sum(Decimal(tally.rank) for tally in others))
    return Aggregation(
        record_count,
        groups=groups,
        group_count=len(tallies),
        other_count=sum(tally.group.count for tally in others),
        other_value=other,
    )


def labelled(key: object, label: str | None, marks: Collection[object]) -> str | None:
    """How people see a key: its label, and the mark that all records with it share.

    Source: docs/contract/resource-server.md 10.
    """
    (mark,) = marks if len(marks) == 1 else (None,)
    if not isinstance(mark, str) or mark in ("", A_PERSON):
        return label
    text = label or (key if isinstance(key, str) else None)
    return f"{text} ({mark})" if text else f"({mark})"


def newest(plan: AggregatePlan, record_count: int, counts: Mapping[Any, int]) -> Aggregation:
    """The same for counted time buckets, of which there may be very many: key → count."""
    starts = sorted(key for key in counts if key is not None)[-plan.limit :]
    keys = [*starts, *([None] if None in counts else [])]
    groups = tuple(Group((key,), counts[key], labels=(None,)) for key in keys)
    return Aggregation(
        record_count,
        groups=groups,
        group_count=len(counts),
        other_count=sum(counts.values()) - sum(group.count for group in groups),
    )


def listed_strings(value: object) -> tuple[str, ...]:
    """The strings that a list holds, each once, as they compare."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(dict.fromkeys(without_nul(each) for each in listed if isinstance(each, str)))


def step_start(value: float | None, width: Fraction) -> Fraction | None:
    """The lower bound of the step that holds a number."""
    return None if value is None else exact_number(value) // width * width


def step_width(low: float, high: float, kind: ValueKind) -> Decimal:
    """The least of 1, 2 and 5 times a power of ten that goes at most 20 times into the span."""
    least = (exact_number(high) - exact_number(low)) / MOST_STEPS
    if least == 0 or (kind is ValueKind.INTEGER and least <= 1):
        return Decimal(1)
    power = (Decimal(least.numerator) / Decimal(least.denominator)).adjusted() - 1
    widths = (Decimal((0, (digit,), power + more)) for more in range(4) for digit in (1, 2, 5))
    return next(width for width in widths if Fraction(width) >= least)


def plain_value(point: Comparable, stored: object, kind: ValueKind) -> object:
    """How a group key or extreme is shown: as stored, whole numbers as integers."""
    if kind not in (ValueKind.INTEGER, ValueKind.NUMBER):
        return stored
    is_whole = isinstance(point, float) and point.is_integer() and abs(point) <= MAX_INTEGER
    return int(point) if is_whole else point


def _kept(plan: AggregatePlan, tallies: Tallies) -> Tallies:
    """The groups that are returned, as they are ordered."""
    if plan.sort is not None:
        return _sorted(plan, plan.sort, tallies)[: plan.limit]
    if plan.time_line is None:
        if len(plan.groupings) == 1 and plan.groupings[0].has_natural_order:
            return _by_key(tallies, 0)[: plan.limit]
        down = plan.metric is not Metric.MIN
        leading = _leading(tallies, _rank, plan.limit, descending=down)
        return sorted(leading, key=_place(plan))[: plan.limit]
    if len(plan.groupings) == 1:
        buckets = [t for t in _by_key(tallies, 0) if t.points[0] is not None]
        return buckets[-plan.limit :] + [t for t in tallies if t.points[0] is None]
    line = plan.time_line
    leading = _leading(tallies, lambda tally: tally.points[line], plan.limit, descending=True)
    ranked = sorted(leading, key=_place(plan))
    first = _by_key(ranked, line, descending=True)[: plan.limit]
    return _by_key(sorted(first, key=_place(plan)), line)


def _leading(
    tallies: Tallies, value: Callable[[GroupTally], Any], limit: int, *, descending: bool
) -> Tallies:
    """Those that can be among the first, equal ones included: the rest need no order."""
    best = sorted(
        (rank for tally in tallies if (rank := value(tally)) is not None), reverse=descending
    )
    if len(best) < limit:
        return tallies
    last = best[limit - 1]
    return [
        tally
        for tally in tallies
        if (rank := value(tally)) is not None and (rank >= last if descending else rank <= last)
    ]


def _rank(tally: GroupTally) -> Any:
    return tally.rank


def _sorted(plan: AggregatePlan, order: GroupOrder, tallies: Tallies) -> Tallies:
    """As asked; of two groupings the time, else the first, weighs more."""
    down = order.is_descending
    if not order.is_by_key:
        leading = _leading(tallies, _rank, plan.limit, descending=down)
        return _nulls_last(sorted(leading, key=_ties(plan)), _rank, descending=down)
    ordered: Tallies = tallies
    for number in sorted(range(len(plan.groupings)), key=lambda n: (n == plan.timed, -n)):
        ordered = _by_key(ordered, number, descending=down)
    return ordered


def _by_key(tallies: Tallies, number: int, *, descending: bool = False) -> list[GroupTally]:
    return _nulls_last(tallies, lambda tally: tally.points[number], descending=descending)


def _nulls_last(
    tallies: Tallies, value: Callable[[GroupTally], Any], *, descending: bool
) -> list[GroupTally]:
    """Those of equal value stay as they stand."""
    present = [tally for tally in tallies if value(tally) is not None]
    absent = [tally for tally in tallies if value(tally) is None]
    return sorted(present, key=value, reverse=descending) + absent


def _place(plan: AggregatePlan) -> Callable[[GroupTally], tuple[Any, ...]]:
    """By rank (descending, `min` ascending, nulls last), then by the keys."""
    sign = 1 if plan.metric is Metric.MIN else -1
    ties = _ties(plan)

    def place(tally: GroupTally) -> tuple[Any, ...]:
        rank = tally.rank
        return (rank is None, 0 if rank is None else sign * rank, *ties(tally))

    return place


def _ties(plan: AggregatePlan) -> Callable[[GroupTally], tuple[Any, ...]]:
    """By JSON text, times and steps by their value; the null group last."""
    by_value = [grouping.has_natural_order for grouping in plan.groupings]

    def ties(tally: GroupTally) -> tuple[Any, ...]:
        borders: list[Any] = []
        for key, point, natural in zip(tally.group.keys, tally.points, by_value, strict=True):
            text: Any = point if natural else orjson.dumps(key)
            borders += [key is None, text if key is not None else type(text)()]
        return tuple(borders)

    return ties
