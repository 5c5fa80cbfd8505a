"""Fields: which names a request may use, filter and sort by, and what of a record it will see.

Rule: an undeclared name is `unknown_field`, a declared one outside the grant `field_not_granted`;
suggestions come from granted names only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from math import inf

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.declaration import Property
from pdpp_kernel.errors import (
    FieldNotGranted,
    InvalidFilter,
    InvalidRequest,
    InvalidSort,
    UnknownField,
)
from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import Text, message
from pdpp_kernel.values import (
    DAY_NANOSECONDS,
    MAX_INTEGER,
    Comparable,
    ValueKind,
    day_number,
    instant_ns,
)
from personal_server.domain.authority import ReadableSource, TimeConstraint
from personal_server.domain.envelope import Warning
from personal_server.enforcement.queries import MAX_MATCH_CHARS, FieldSelection, FilterText

MAX_SUGGESTIONS = 5
MAX_GRANTED = 12

Sources = tuple[ReadableSource, ...]


def require_field(sources: Sources, name: str, param: str) -> Property:
    """The declared property, if every source grants it.

    Shapes: `sources` are of one stream of one declaration.
    Raises: UnknownField, FieldNotGranted.
    """
    declared = sources[0].declared.properties.get(name)
    if declared is None:
        raise UnknownField(
            message(
                "'%(stream)s' declares no field '%(name)s'.", stream=sources[0].stream, name=name
            ),
            param=param,
            **granted_here(name, granted_names(sources)),
        )
    if not all(name in source.fields for source in sources):
        raise FieldNotGranted(
            message("Field '%(name)s' is not part of this grant.", name=name),
            param=param,
            **granted_here(name, granted_names(sources)),
        )
    return declared


def granted_names(sources: Sources) -> tuple[str, ...]:
    """The fields that every source grants, in schema order."""
    return tuple(n for n in sources[0].fields if all(n in source.fields for source in sources))


def near(name: str, names: Iterable[str]) -> list[str] | None:
    """At most five near names, or `None`."""
    return get_close_matches(name, list(names), n=MAX_SUGGESTIONS) or None


def granted_here(name: str, names: Iterable[str]) -> dict[str, list[str] | None]:
    """What an error about a name says of those that are granted, and of near ones among them."""
    granted = list(names)
    return {"allowed_values": granted[:MAX_GRANTED], "suggestions": near(name, granted)}


def check_cut(cut: FieldSelection) -> None:
    """`fields` and `view` exclude each other.  Raises: InvalidRequest."""
    if cut.view is not None and cut.fields:
        raise InvalidRequest("'fields' and 'view' exclude each other; send one.", param="view")


def shown_fields(sources: Sources, cut: FieldSelection) -> tuple[tuple[str, ...], ...]:
    """Per source the fields of `data`, in schema order.

    Source: docs/contract/resource-server.md 7.4.
    Raises: UnknownField, FieldNotGranted, InvalidRequest (unusable view).
    """
    if cut.view is not None:
        return tuple(_of_view(source, cut.view) for source in sources)
    for name in cut.fields:
        require_field(sources, name, "fields")
    if not cut.fields:
        return tuple(source.fields for source in sources)
    return tuple(_cut(source, cut.fields) for source in sources)


def _of_view(source: ReadableSource, view_id: str) -> tuple[str, ...]:
    view = source.declared.view(view_id)
    if view is None or not set(view.fields) & set(source.fields):
        usable = [v.id for v in source.declared.views if set(v.fields) & set(source.fields)]
        raise InvalidRequest(
            f"'{source.stream}' has no such view here.",
            param="view",
            suggestions=usable[:MAX_SUGGESTIONS] or None,
        )
    return _cut(source, view.fields)


def _cut(source: ReadableSource, names: tuple[str, ...]) -> tuple[str, ...]:
    kept = {*names, *source.declared.primary_key}
    return tuple(name for name in source.fields if name in kept)


# Filters and sorts: from the caller's words to conditions on granted fields.
#
# Rule: a value is read by the declared kind of its field, once, here; a condition that exists can
# be compared as it stands.
# Source: docs/contract/resource-server.md 7.2, 7.3, 7.7.


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


def conditions_on(sources: Sources, filters: tuple[FilterText, ...]) -> tuple[Condition, ...]:
    """The conditions of a request.

    Raises: UnknownField, FieldNotGranted, InvalidFilter.
    """
    if len(filters) > MAX_CONDITIONS:
        raise InvalidFilter(
            message("At most %(most)s conditions.", most=MAX_CONDITIONS), param=filters[-1].param
        )
    return tuple(_condition(sources, text) for text in filters)


def reaching_outside(
    parts: Iterable[tuple[ReadableSource, tuple[Condition, ...]]],
) -> tuple[Warning, ...]:
    """A warning for each time constraint that the conditions of its sources reach out of.

    It follows from grant and request alone.
    """
    found: dict[TimeConstraint, list[ReadableSource]] = {}
    for source, conditions in parts:
        constraint = source.time_constraint
        if constraint is not None and _reaches_outside(constraint, conditions):
            found.setdefault(constraint, []).append(source)
    return tuple(_outside(constraint, sources) for constraint, sources in found.items())


def asked_span(field: str, conditions: Iterable[Condition]) -> tuple[float, float] | None:
    """The first and the last instant (UTC ns) that conditions on a time field let through.

    `None` without such conditions.
    """
    spans = [_span(each) for each in conditions if each.field == field]
    bounded = [span for span in spans if span is not None]
    if not bounded:
        return None
    return max(first for first, _ in bounded), min(last for _, last in bounded)


def _span(condition: Condition) -> tuple[float, float] | None:
    if condition.kind not in (ValueKind.DATE, ValueKind.INSTANT):
        return None
    unit = DAY_NANOSECONDS if condition.kind is ValueKind.DATE else 1
    points = [each * unit for each in condition.values if isinstance(each, int)]
    match condition.operator:
        case Operator.EQ | Operator.IN:
            return min(points), max(points)
        case Operator.GTE:
            return points[0], inf
        case Operator.GT:
            return points[0] + unit, inf
        case Operator.LTE:
            return -inf, points[0]
        case Operator.LT:
            return -inf, points[0] - unit
        case _:
            return None


def _reaches_outside(constraint: TimeConstraint, conditions: tuple[Condition, ...]) -> bool:
    span = asked_span(constraint.field, conditions)
    if span is None or span[0] > span[1]:
        return False
    before = constraint.since_ns is not None and span[0] < constraint.since_ns
    return before or (constraint.until_ns is not None and span[1] >= constraint.until_ns)


def _outside(constraint: TimeConstraint, sources: list[ReadableSource]) -> Warning:
    bounds = {"since": constraint.since, "until": constraint.until}
    given = {name: text for name, text in bounds.items() if text is not None}
    words = " ".join(f"{name} {text}" for name, text in given.items())
    return Warning(
        "outside_time_constraint",
        f"This access holds '{constraint.field}' {words} only.",
        field=constraint.field,
        connection_id=sources[0].connection_id if len(sources) == 1 else None,
        detail={"time_constraint": {"field": constraint.field, **given}},
    )


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
            message(
                "Lists of '%(stream)s' are not sorted by '%(name)s'.",
                stream=sources[0].stream,
                name=name,
            ),
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
            message(
                "'%(field)s' holds no single value; filters take scalar fields.", field=text.field
            ),
            param=text.param,
        )
    if text.operator is None:
        return _exact(declared, declared.kind, Operator.EQ, text)
    if text.operator in declared.operators:
        return _beyond_ranges(declared, declared.kind, Operator(text.operator), text)
    ranges = sources[0].declared.range_filters.get(text.field, ())
    allowed = (*ranges, *declared.operators)
    if text.operator not in ranges:
        raise InvalidFilter(
            message(
                "'%(field)s' does not take the operator '%(operator)s'. %(example)s",
                field=text.field,
                operator=text.operator,
                example=_example(declared),
            ),
            param=text.param,
            allowed_values=list(allowed),
        )
    return _range(declared, declared.kind, Operator(text.operator), text)


def _exact(declared: Property, kind: ValueKind, operator: Operator, text: FilterText) -> Condition:
    texts = (text.text, *text.further)
    values = [value for each in texts if (value := _PARSERS[kind](each)) is not None]
    if len(values) < len(texts):
        raise _wrong_type(declared, text)
    first, *rest = dict.fromkeys(values)
    return Condition(text.field, kind, operator, first, tuple(rest), declared.is_caseless)


def _beyond_ranges(
    declared: Property, kind: ValueKind, operator: Operator, text: FilterText
) -> Condition:
    """Lists of values, negation, parts of texts, and whether there is a value at all."""
    match operator:
        case Operator.IN | Operator.NE:
            return _exact(declared, kind, operator, text)
        case Operator.EXISTS:
            exists = _boolean(text.text)
            if exists is None:
                raise InvalidFilter("'exists' takes true or false.", param=text.param)
            return Condition(text.field, kind, operator, exists)
        case _:
            part = _string(text.text)
            if not part or len(part) > MAX_MATCH_CHARS:
                raise InvalidFilter(
                    message(
                        "'%(operator)s' takes 1 to %(most)s characters.",
                        operator=operator,
                        most=MAX_MATCH_CHARS,
                    ),
                    param=text.param,
                )
            return Condition(text.field, kind, operator, part)


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


def parsed_value(kind: ValueKind, text: str) -> Comparable | None:
    """A value as the field of a condition takes it, `None` where it is none of that kind."""
    return _PARSERS[kind](text)


def _wrong_type(declared: Property, text: FilterText) -> InvalidFilter:
    return InvalidFilter(
        message(
            "'%(field)s' takes a value of type %(kind)s. %(example)s",
            field=declared.name,
            kind=str(declared.kind),
            example=_example(declared),
        ),
        param=text.param,
    )


def _example(declared: Property) -> Text:
    value = _EXAMPLES[declared.kind] if declared.kind else "text"
    return message("For example: filter[%(field)s]=%(value)s", field=declared.name, value=value)
