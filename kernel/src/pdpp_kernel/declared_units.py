"""Units: in what the values of a field are, and which figures are over values or in a unit.

Rule: a unit is what a declaration says it is: one for all values of a field (`x_pdpp_unit`), or
what another field of the same record holds (`x_pdpp_unit_field`).
Source: docs/contract/resource-server.md 10, 17; docs/decisions.md C42.
"""

from __future__ import annotations

from typing import Self

import msgspec

from pdpp_kernel.aggregations import Metric
from pdpp_kernel.declaration import Property
from pdpp_kernel.values import NUMBERS

MAX_UNIT_CHARS = 40
CURRENCY = "currency"
"""The `x_pdpp_type` of a field that holds currencies."""


class DeclaredUnit(msgspec.Struct, frozen=True):
    """In what the values of a field are.

    Shapes: beside a `field`, `part` is which part of that unit one is (`minor`: its smallest).
    """

    part: str | None
    field: str | None

    @classmethod
    def of(cls, measured: Property) -> Self | None:
        """What a number says of its unit."""
        part, named = (measured.schema.get(f"x_pdpp_{name}") for name in ("unit", "unit_field"))
        part = part if isinstance(part, str) and 0 < len(part) <= MAX_UNIT_CHARS else None
        named = named if isinstance(named, str) else None
        return cls(part, named) if measured.kind in NUMBERS and (part or named) else None

    def named(self, value: object = None) -> str | None:
        """The unit as it is shown, beside what the record holds in `field`."""
        if self.field is None:
            return self.part
        if not isinstance(value, str) or not value.strip() or len(value) > MAX_UNIT_CHARS:
            return None
        return f"{value} {self.part}" if self.part else value


def is_over_values(metric: Metric) -> bool:
    """Whether it is a sum, a mean or a percentile: what these say depends on how many values."""
    return metric in (Metric.SUM, Metric.AVG) or metric.percent is not None


def is_in_unit(metric: Metric) -> bool:
    """Whether its value is in the unit of the field."""
    return metric.takes_field and metric is not Metric.COUNT_DISTINCT
