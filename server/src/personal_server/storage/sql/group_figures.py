"""What is known of one group while it is measured."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec

from pdpp_kernel.values import Comparable, exact_number, exact_sum


class Figures(msgspec.Struct):
    """What is known of one group.

    `values` are those it has and how many records have each, where a metric asks for that; there
    are hundreds of groups, and few metrics do.
    """

    count: int = 0
    total: Decimal = Decimal(0)
    present: int = 0
    extreme: Comparable | None = None
    values: dict[Any, int] | None = None

    def add(self, number: Decimal) -> None:
        """One more part of the sum."""
        self.total = exact_sum((self.total, number))

    def note(self, value: Comparable, records: int) -> None:
        """So many more records have a value."""
        if self.values is None:
            self.values = {}
        self.values[value] = self.values.get(value, 0) + records

    @property
    def value_count(self) -> int:
        """How many records have a value, of the metrics that are over values alone."""
        return self.present or sum((self.values or {}).values())

    @property
    def average(self) -> Fraction | None:
        """The sum, shared by those that have a value."""
        return Fraction(self.total) / self.present if self.present else None

    def percentile(self, percent: int) -> float | None:
        """The least number that so many of a hundred do not exceed."""
        return self._at(-(-percent * self.value_count // 100))

    @property
    def median(self) -> Fraction | None:
        """The middle number, or the mean of the two in the middle."""
        total = self.value_count
        low = self._at((total + 1) // 2)
        high = low if total % 2 else self._at(total // 2 + 1)
        if low is None or high is None:
            return None
        return (exact_number(low) + exact_number(high)) / 2

    def _at(self, rank: int) -> float | None:
        """The number at a place, counted from 1 upwards."""
        seen, known = 0, self.values or {}
        for number in sorted(known):
            seen += known[number]
            if seen >= rank:
                return number
        return None
