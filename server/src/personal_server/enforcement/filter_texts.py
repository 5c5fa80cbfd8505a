"""Filters as a caller wrote them, before anybody looked at what is allowed.

Source: docs/contract/resource-server.md 7.2.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

# Values of all conditions together.
MAX_FILTER_VALUES = 100


class FilterText(msgspec.Struct, frozen=True):
    """One condition as written: `filter[field]=text` or `filter[field][operator]=text`.

    Shapes: `further` are the other texts of an operator that was sent several times.
    """

    field: str
    operator: str | None
    text: str
    further: tuple[str, ...] = ()

    @property
    def param(self) -> str:
        """How errors name the condition."""
        return f"filter[{self.field}]"


def filters_of(sent: Iterable[tuple[tuple[str, ...], str]]) -> tuple[FilterText, ...]:
    """Conditions as written (bracketed keys, value), each with its values in an order of their own.

    Shapes: the keys are the field and perhaps an operator.
    """
    values: dict[tuple[str, str | None], list[str]] = {}
    for (field, *operator), value in sent:
        values.setdefault((field, next(iter(operator), None)), []).append(value)
    return tuple(
        FilterText(field, operator, min(sent), tuple(sorted(sent)[1:]))
        for (field, operator), sent in values.items()
    )
