"""Values of filters: from the caller's words to conditions on granted fields.

Rule: a value is read by the declared kind of its field, once, here; a condition that exists can
be compared as it stands.
Source: docs/contract/resource-server.md 7.2, 7.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal

from pdpp_kernel.criteria import Condition
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import InvalidFilter
from pdpp_kernel.operators import Operator, Takes
from pdpp_kernel.texts import Text, message
from pdpp_kernel.values import (
    MAX_INTEGER,
    Comparable,
    ValueKind,
    day_number,
    instant_ns,
)
from personal_server.enforcement.asked_times import moment_of, range_on
from personal_server.enforcement.fields import Sources, require_field
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import MAX_MATCH_CHARS

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


def condition_on(sources: Sources, text: FilterText, time_zone: str | None = None) -> Condition:
    """One condition of a request.  Raises: UnknownField, FieldNotGranted, InvalidFilter."""
    declared = require_field(sources, text.field, text.param)
    if declared.kind is None:
        raise InvalidFilter(_unfiltered(declared), param=text.param)
    if text.operator is None:
        return _exact(declared, declared.kind, Operator.EQ, text, time_zone)
    if text.operator in declared.operators:
        return _beyond_ranges(declared, declared.kind, Operator(text.operator), text, time_zone)
    ranges = sources[0].declared.range_filters.get(text.field, ())
    allowed = (*ranges, *declared.operators)
    if text.operator not in ranges:
        raise InvalidFilter(
            message(
                "The field '%(field)s' cannot be filtered with '%(operator)s'. %(example)s",
                field=text.field,
                operator=text.operator,
                example=_example(declared),
            ),
            param=text.param,
            allowed_values=list(allowed),
        )
    return _range(sources, declared, Operator(text.operator), text, time_zone)


def _unfiltered(declared: Property) -> str:
    if declared.is_list:
        return message(
            (
                "Records cannot be filtered by '%(field)s', because this field is a list. "
                "Group by it: that counts the records of each value, and those without one."
            ),
            field=declared.name,
        )
    return message(
        "Records cannot be filtered by '%(field)s', because this field is a list or an object.",
        field=declared.name,
    )


def _exact(
    declared: Property,
    kind: ValueKind,
    operator: Operator,
    text: FilterText,
    time_zone: str | None,
) -> Condition:
    texts = (text.text, *text.further)
    values = [v for each in texts if (v := parsed_value(kind, each, time_zone)) is not None]
    if len(values) < len(texts):
        raise _wrong_type(declared, text)
    first, *rest = dict.fromkeys(values)
    return Condition(text.field, kind, operator, first, tuple(rest), declared.is_caseless)


def _beyond_ranges(
    declared: Property,
    kind: ValueKind,
    operator: Operator,
    text: FilterText,
    time_zone: str | None,
) -> Condition:
    """Lists of values, negation, parts of texts, and whether there is a value at all."""
    match operator.takes:
        case Takes.VALUE | Takes.VALUES:
            return _exact(declared, kind, operator, text, time_zone)
        case Takes.PRESENCE:
            exists = _boolean(text.text)
            if exists is None:
                raise InvalidFilter(
                    message(
                        "The value for '%(operator)s' must be true or false.", operator=operator
                    ),
                    param=text.param,
                )
            return Condition(text.field, kind, operator, exists)
        case Takes.PART:
            part = _string(text.text)
            if not part or len(part) > MAX_MATCH_CHARS:
                raise InvalidFilter(
                    message(
                        "'%(operator)s' needs a value of 1 to %(most)s characters.",
                        operator=operator,
                        most=MAX_MATCH_CHARS,
                    ),
                    param=text.param,
                )
            return Condition(text.field, kind, operator, part)


def _range(
    sources: Sources,
    declared: Property,
    operator: Operator,
    text: FilterText,
    time_zone: str | None,
) -> Condition:
    found: Condition | None = None
    if declared.kind is ValueKind.INSTANT:
        found = range_on(declared, operator, text.text, time_zone, sources)
    elif declared.kind is not None:
        value = parsed_value(declared.kind, text.text)
        found = None if value is None else Condition(text.field, declared.kind, operator, value)
    if found is None:
        raise _wrong_type(declared, text)
    return found


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


def parsed_value(kind: ValueKind, text: str, time_zone: str | None = None) -> Comparable | None:
    """A value as the field of a condition takes it, `None` where it is none of that kind."""
    if kind is ValueKind.INSTANT and time_zone is not None and day_number(text) is None:
        return moment_of(text, time_zone)
    return _PARSERS[kind](text)


def _wrong_type(declared: Property, text: FilterText) -> InvalidFilter:
    return InvalidFilter(
        message(
            "The value for '%(field)s' must be of type %(kind)s. %(example)s",
            field=declared.name,
            kind=str(declared.kind),
            example=_without_value(declared) if text.text == "null" else _example(declared),
        ),
        param=text.param,
    )


def _without_value(declared: Property) -> Text:
    return message(
        "For records without a value: filter[%(field)s][exists]=false", field=declared.name
    )


def _example(declared: Property) -> Text:
    value = _EXAMPLES[declared.kind] if declared.kind else "text"
    return message("For example: filter[%(field)s]=%(value)s", field=declared.name, value=value)
