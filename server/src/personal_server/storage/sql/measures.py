"""Measures of a group: counts, exact sums, extremes, distinct values, ranks.

Rule: everything is exact.  A sum in SQL is a sum of integers: doubles that are whole
ten-thousandths below 10^8 are summed as such, all others are added as decimals.
Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.dialect import Dialect
from personal_server.storage.sql.group_figures import Figures

_SCALE = 10_000
_HALF = 1 << 32


def measured(metric: Metric, name: str, kind: ValueKind, dialect: Dialect) -> str:
    """The columns that measure a metric over a group, after its count; begins with a comma."""
    match metric:
        case Metric.SUM | Metric.AVG:
            return "".join(f", {part}" for part in (f"count({name})", *sums(name, kind, dialect)))
        case Metric.MIN:
            return f", min({name})"
        case Metric.MAX:
            return f", max({name})"
        case _:
            return ""


def sums(name: str, kind: ValueKind, dialect: Dialect) -> tuple[str, ...]:
    """The parts of a sum in SQL: two halves, or ten-thousandths."""
    if kind is ValueKind.INTEGER:
        return dialect.integer_sums(name)
    return (f"sum(CASE WHEN {_is_scaled(name, dialect)} THEN {_scaled(name, dialect)} END)",)


def unscaled(name: str, kind: ValueKind, dialect: Dialect) -> str | None:
    """Which values a sum in SQL leaves out; `None` if it takes all."""
    if kind is ValueKind.INTEGER:
        return None
    return f"{name} IS NOT NULL AND NOT ({_is_scaled(name, dialect)})"


def absorb(figures: Figures, metric: Metric, count: int, values: list[Any]) -> None:
    """Add a line of `measured` columns to a group."""
    figures.count += count
    if not values:
        return
    match metric:
        case Metric.SUM | Metric.AVG:
            figures.present += values[0]
            figures.add(_summed(values[1:]))
        case Metric.MIN | Metric.MAX:
            (value,) = values
            extremes = [extreme for extreme in (figures.extreme, value) if extreme is not None]
            pick: Any = min if metric is Metric.MIN else max
            figures.extreme = pick(extremes, default=None)
        case _:
            pass


def _summed(values: Sequence[Any]) -> Decimal:
    """A part of a sum, from its two halves or its ten-thousandths."""
    if len(values) == 2:
        high, low = values
        return Decimal((high or 0) * _HALF + (low or 0))
    return Decimal(values[0] or 0) / _SCALE


def _scaled(name: str, dialect: Dialect) -> str:
    return dialect.rounded(f"{name} * {_SCALE}.0")


def _is_scaled(name: str, dialect: Dialect) -> str:
    return f"abs({name}) < 1e8 AND {_scaled(name, dialect)} / {_SCALE}.0 = {name}"
