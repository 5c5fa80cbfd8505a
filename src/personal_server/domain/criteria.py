"""Criteria: the words of a question that queries, authorized reads and plans share.

Rule: every value here is already *comparable* (`domain.values.comparable`), so nobody below
parses anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from personal_server.domain.values import Comparable, ValueKind


class Operator(StrEnum):
    """Comparison operators of conditions; null values satisfy none but `exists` false."""

    EQ = "eq"
    GTE = "gte"
    GT = "gt"
    LTE = "lte"
    LT = "lt"
    IN = "in"
    NE = "ne"
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"
    EXISTS = "exists"


RANGES = frozenset({Operator.GTE, Operator.GT, Operator.LTE, Operator.LT})


@dataclass(frozen=True, slots=True)
class Condition:
    """`field operator value`; all conditions of a plan hold together.

    Exact conditions on strings compare whole strings; on `date-time`, instants; on `date`, days.
    Shapes: `further` are the other values of `in`; `value` of `exists` is a boolean; `caseless`:
        `eq`, `in` and `ne` compare folded strings, as `contains` and `starts_with` always do.
    """

    field: str
    kind: ValueKind
    operator: Operator
    value: Comparable
    further: tuple[Comparable, ...] = ()
    caseless: bool = False

    @property
    def values(self) -> tuple[Comparable, ...]:
        """All values, of `in` several."""
        return (self.value, *self.further)


@dataclass(frozen=True, slots=True)
class Order:
    """Total order (sort value, key, connection); nulls last in both directions.

    `field` `None`: (key, connection) alone.  Key and connection follow `descending`.
    """

    field: str | None
    kind: ValueKind | None
    descending: bool


class Metric(StrEnum):
    """Aggregate metrics."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    COUNT_DISTINCT = "count_distinct"


class Granularity(StrEnum):
    """Time buckets; weeks are ISO weeks."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True)
class Grouping:
    """By a scalar field's values, or (with `granularity`) by time buckets in `time_zone`."""

    field: str
    kind: ValueKind
    granularity: Granularity | None = None
    time_zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Term:
    """One search term: adjacent tokens (a phrase if several); `prefix`: the last token begins so.

    Tokens are normalized (`domain.tokens`).
    """

    tokens: tuple[str, ...]
    prefix: bool = False
