"""Filters and sorts: from the caller's words to conditions on granted fields.

Rule: a value is read by the declared kind of its field, once, here; a condition that exists can be
compared as it stands.
Source: docs/contract/resource-server.md 7.2, 7.3, 7.7.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from personal_server.domain.authority import ReadableSource
from personal_server.domain.criteria import Condition, Operator, Order
from personal_server.domain.declaration import Property
from personal_server.domain.values import (
    DAY_NANOSECONDS,
    MAX_INTEGER,
    Comparable,
    ValueKind,
    day_number,
    instant_ns,
)
from personal_server.enforcement.fields import granted_names, require_field
from personal_server.enforcement.queries import FilterText
from personal_server.errors import InvalidFilter, InvalidSort

MAX_CONDITIONS = 32
MAX_NUMBER_CHARS = 64

_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?\Z")
_EXAMPLES: Mapping[ValueKind, str] = {
    ValueKind.BOOLEAN: "true",
    ValueKind.INTEGER: "3",
    ValueKind.NUMBER: "9.5",
    ValueKind.STRING: "text",
    ValueKind.DATE: "2026-01-31",
    ValueKind.INSTANT: "2026-01-31T09:00:00Z",
}

Sources = tuple[ReadableSource, ...]


def conditions_on(sources: Sources, filters: tuple[FilterText, ...]) -> tuple[Condition, ...]:
    """The conditions of a request.

    Raises: UnknownField, FieldNotGranted, InvalidFilter.
    """
    if len(filters) > MAX_CONDITIONS:
        raise InvalidFilter(f"At most {MAX_CONDITIONS} conditions.", param=filters[-1].param)
    return tuple(_condition(sources, text) for text in filters)


def order_of(sources: Sources, sort: str | None, order: str | None) -> Order:
    """The total order of a list.

    Without a usable cursor field on every source the order is that of the keys, because the order
    of a hidden value is a disclosure.
    Raises: UnknownField, FieldNotGranted, InvalidSort.
    """
    if sort is not None:
        return _asked_order(sources, sort, order)
    name = sources[0].cursor_field
    if name is None or any(source.cursor_field != name for source in sources):
        return Order(None, None, order == "desc")
    return Order(name, sources[0].declared.properties[name].kind, order != "asc")


def _asked_order(sources: Sources, sort: str, order: str | None) -> Order:
    descending = sort.startswith("-")
    name = sort[1:] if descending else sort
    declared = require_field(sources, name, "sort")
    if name not in sources[0].declared.sortable or declared.kind is None:
        granted = granted_names(sources)
        raise InvalidSort(
            f"Lists of '{sources[0].stream}' are not sorted by '{name}'.",
            param="sort",
            allowed_values=[n for n in sources[0].declared.sortable if n in granted],
        )
    if order is not None and (order == "desc") != descending:
        raise InvalidSort(
            f"'sort={sort}' and 'order={order}' disagree; leave 'order' out.",
            param="sort",
            allowed_values=[f"-{name}" if order == "desc" else name],
        )
    return Order(name, declared.kind, descending)


def _condition(sources: Sources, text: FilterText) -> Condition:
    declared = require_field(sources, text.field, text.param)
    if declared.kind is None:
        raise InvalidFilter(
            f"'{text.field}' holds no single value; filters take scalar fields.", param=text.param
        )
    if text.operator is None:
        return _exact(declared, declared.kind, text)
    allowed = sources[0].declared.range_filters.get(text.field, ())
    if text.operator not in allowed:
        raise InvalidFilter(
            f"'{text.field}' does not take the operator '{text.operator}'. {_example(declared)}",
            param=text.param,
            allowed_values=list(allowed) or None,
        )
    return _range(declared, declared.kind, Operator(text.operator), text)


def _exact(declared: Property, kind: ValueKind, text: FilterText) -> Condition:
    value = _PARSERS[kind](text.text)
    if value is None:
        raise _wrong_type(declared, text)
    return Condition(text.field, kind, Operator.EQ, value)


def _range(declared: Property, kind: ValueKind, operator: Operator, text: FilterText) -> Condition:
    day = day_number(text.text) if kind is ValueKind.INSTANT else None
    if day is not None:
        return _whole_day(text.field, operator, day)
    value = _PARSERS[kind](text.text)
    if value is None:
        raise _wrong_type(declared, text)
    return Condition(text.field, kind, operator, value)


def _whole_day(field: str, operator: Operator, day: int) -> Condition:
    """A bare date on a `date-time` field means that whole UTC day."""
    after = operator in (Operator.GT, Operator.LTE)
    bound = (day + 1 if after else day) * DAY_NANOSECONDS
    from_there = operator in (Operator.GT, Operator.GTE)
    return Condition(field, ValueKind.INSTANT, Operator.GTE if from_there else Operator.LT, bound)


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text)


def _number(text: str) -> int | float | None:
    if _JSON_NUMBER.match(text) is None or len(text) > MAX_NUMBER_CHARS:
        return None
    exact = Decimal(text)
    if exact == exact.to_integral_value() and abs(exact) <= MAX_INTEGER:
        return int(exact)
    nearest = float(exact)
    return nearest if abs(nearest) < float("inf") else None


def _integer(text: str) -> int | None:
    value = _number(text)
    return value if isinstance(value, int) else None


def _string(text: str) -> str | None:
    return None if "\x00" in text else text


_PARSERS: Mapping[ValueKind, Callable[[str], Comparable | None]] = {
    ValueKind.BOOLEAN: _boolean,
    ValueKind.INTEGER: _integer,
    ValueKind.NUMBER: _number,
    ValueKind.STRING: _string,
    ValueKind.DATE: day_number,
    ValueKind.INSTANT: instant_ns,
}


def _wrong_type(declared: Property, text: FilterText) -> InvalidFilter:
    return InvalidFilter(
        f"'{declared.name}' takes a value of type {declared.kind}. {_example(declared)}",
        param=text.param,
    )


def _example(declared: Property) -> str:
    value = _EXAMPLES[declared.kind] if declared.kind else "text"
    return f"For example: filter[{declared.name}]={value}"
