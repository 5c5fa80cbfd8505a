"""What is measured per group: counts, exact sums, extremes, distinct values.

Rule: a sum in SQL is a sum of integers.  Doubles that are whole ten-thousandths below 10^8 are
summed as such, which is exact; all others are added as decimals here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from personal_server.domain.criteria import Metric
from personal_server.domain.values import Comparable, ValueKind, exact_sum

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
