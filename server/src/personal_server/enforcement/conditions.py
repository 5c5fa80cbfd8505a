"""Conditions of a request on granted fields, and where they reach outside of what was granted.

Source: docs/contract/resource-server.md 7.2, 7.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from pdpp_kernel.criteria import Condition
from pdpp_kernel.errors import InvalidFilter
from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import message
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource, TimeConstraint
from personal_server.enforcement.fields import Sources
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.filter_values import condition_on

MAX_CONDITIONS = 32


def conditions_on(
    sources: Sources, filters: tuple[FilterText, ...], time_zone: str | None = None
) -> tuple[Condition, ...]:
    """The conditions of a request.

    Raises: UnknownField, FieldNotGranted, InvalidFilter.
    """
    if len(filters) > MAX_CONDITIONS:
        raise InvalidFilter(
            message("A request can have at most %(most)s conditions.", most=MAX_CONDITIONS),
            param=filters[-1].param,
        )
    return tuple(condition_on(sources, text, time_zone) for text in filters)


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
    return _met_span([each for each in conditions if each.field == field])


def _met_span(conditions: Iterable[Condition]) -> tuple[float, float] | None:
    bounded = [span for each in conditions if (span := _span(each)) is not None]
    if not bounded:
        return None
    return max(first for first, _ in bounded), min(last for _, last in bounded)


def _span(condition: Condition) -> tuple[float, float] | None:
    if condition.any_of:
        # what lasts counts as where it is asked for, wherever it began
        spans = [span for each in condition.any_of if (span := _met_span(each)) is not None]
        return (min(s for s, _ in spans), max(e for _, e in spans)) if spans else None
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
        f"In this access, '{constraint.field}' has only these values: {words}.",
        field=constraint.field,
        connection_id=sources[0].connection_id if len(sources) == 1 else None,
        detail={"time_constraint": {"field": constraint.field, **given}},
    )
