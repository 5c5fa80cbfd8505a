"""What an aggregate computes, and by what it groups: a row for each metric, grouping, granularity.

Rule: the choices of `/v1`, the published schema of the tool, what a declaration may list and what a
client asks a server's capabilities for follow from these rows.
Source: docs/contract/resource-server.md 10, 17.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_kernel.values import NUMBERS, SCALARS, TIMES, ValueKind

Kinds = frozenset[ValueKind]
INSTANTS = frozenset({ValueKind.INSTANT})
# Of the local ISO form: `2026-01-31T09:00`, and without the time of the day.
MINUTE_CHARS, DAY_CHARS = 16, 10
FURTHER = ReadCapability.AGGREGATE_METRICS


class Metric(StrEnum):
    """Aggregate metrics; `pN` is the percentile by nearest rank.

    Shapes: a metric without `kinds` takes no field; with a `capability`, it goes to servers that
        name that and is declared by no source: it is for numbers that have a sum, a least or a
        greatest value.
    """

    _value_: str
    kinds: Kinds
    capability: ReadCapability | None
    percent: int | None
    """Which percentile; the median is the fiftieth."""

    def __new__(
        cls,
        word: str,
        kinds: Kinds,
        capability: ReadCapability | None = None,
        percent: int | None = None,
    ) -> Self:
        """A member is its word, and knows its row."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.kinds, member.capability, member.percent = kinds, capability, percent
        return member

    COUNT = "count", frozenset[ValueKind]()
    SUM = "sum", NUMBERS
    MIN = "min", NUMBERS | TIMES
    MAX = "max", NUMBERS | TIMES
    COUNT_DISTINCT = "count_distinct", SCALARS
    AVG = "avg", NUMBERS, FURTHER
    MEDIAN = "median", NUMBERS, FURTHER, 50
    P10 = "p10", NUMBERS, FURTHER, 10
    P25 = "p25", NUMBERS, FURTHER, 25
    P75 = "p75", NUMBERS, FURTHER, 75
    P90 = "p90", NUMBERS, FURTHER, 90
    P95 = "p95", NUMBERS, FURTHER, 95
    P99 = "p99", NUMBERS, FURTHER, 99

    @property
    def takes_field(self) -> bool:
        """Whether it is computed of a field's values, and not of records."""
        return bool(self.kinds)

    @property
    def is_declared(self) -> bool:
        """Whether a source says which fields have it."""
        return self.capability is None


class DeclaredGrouping(StrEnum):
    """By what a source says that its records may be grouped, with the kinds that takes."""

    _value_: str
    kinds: Kinds

    def __new__(cls, word: str, kinds: Kinds) -> Self:
        """A member is its word, and knows its row."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.kinds = kinds
        return member

    BY_VALUE = "group_by", SCALARS
    BY_TIME = "group_by_time", TIMES


class Granularity(StrEnum):
    """Time buckets; weeks are ISO weeks, and the last two come round again.

    Shapes: `kinds` are those of the times that have it; `is_cyclic`: a bucket holds one time of
        every day or week, and none is the newest; `label_chars` is how much of the local ISO form
        names any other bucket.
    """

    _value_: str
    kinds: Kinds
    is_cyclic: bool
    label_chars: int

    def __new__(
        cls, word: str, kinds: Kinds, is_cyclic: bool = False, label_chars: int = DAY_CHARS
    ) -> Self:
        """A member is its word, and knows its row."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.kinds, member.is_cyclic, member.label_chars = kinds, is_cyclic, label_chars
        return member

    MINUTE = "minute", INSTANTS, False, MINUTE_CHARS
    HOUR = "hour", INSTANTS, False, MINUTE_CHARS
    DAY = "day", TIMES
    WEEK = "week", TIMES
    MONTH = "month", TIMES
    QUARTER = "quarter", TIMES
    YEAR = "year", TIMES
    HOUR_OF_DAY = "hour_of_day", INSTANTS, True
    WEEKDAY = "weekday", TIMES, True

    @property
    def capability(self) -> ReadCapability | None:
        """What a server has to name that takes it."""
        return ReadCapability.AGGREGATE_GROUPS if self.is_cyclic else None


FIGURES_OF_FIELDS = (*(m for m in Metric if m.is_declared and m.takes_field), *DeclaredGrouping)
"""The metrics and groupings for which a declaration lists fields."""
FIGURE_WORDS = tuple(sorted(figure.value for figure in FIGURES_OF_FIELDS))
"""Their words, in the order in which a schema lists them."""
