"""Aggregates: metrics and groupings that are declared and granted.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from personal_server.domain.authority import ReadableSource
from personal_server.domain.criteria import Granularity, Grouping, Metric
from personal_server.domain.declaration import Aggregations
from personal_server.domain.values import ValueKind
from personal_server.enforcement.fields import require_field
from personal_server.enforcement.queries import AggregateQuery
from personal_server.errors import InvalidRequest

_DAY_AND_COARSER = (
    Granularity.DAY,
    Granularity.WEEK,
    Granularity.MONTH,
    Granularity.QUARTER,
    Granularity.YEAR,
)

Sources = tuple[ReadableSource, ...]


def metric_of(
    sources: Sources, query: AggregateQuery
) -> tuple[Metric, str | None, ValueKind | None]:
    """The metric, its field and the field's kind.

    Raises: InvalidRequest, UnknownField, FieldNotGranted.
    """
    metric = Metric(query.metric)
    declared = sources[0].declared.aggregations
    usable = usable_kinds(sources[0])
    if query.field is None:
        if not declared.count:
            raise _undeclared("metric", sources, [m for m in Metric if usable.get(m.value)])
        return metric, None, None
    found = require_field(sources, query.field, "field")
    if query.field not in _declared_for(declared, metric.value):
        raise _undeclared("field", sources, usable.get(metric.value, ()))
    return metric, query.field, found.kind


def check_combination(query: AggregateQuery) -> None:
    """Which parameters go together.  Raises: InvalidRequest."""
    counts = query.metric == Metric.COUNT
    if counts and query.field is not None:
        raise InvalidRequest("'count' takes no field; leave 'field' out.", param="field")
    if not counts and query.field is None:
        raise InvalidRequest(f"'{query.metric}' needs a 'field'.", param="field")
    if query.group_by is not None and query.group_by_time is not None:
        raise InvalidRequest("'group_by' and 'group_by_time' exclude each other.", param="group_by")
    if query.group_by_time is None:
        for name, value in (("granularity", query.granularity), ("time_zone", query.time_zone)):
            if value is not None:
                raise InvalidRequest(f"'{name}' needs 'group_by_time'.", param=name)
    if query.time_zone is not None and query.time_zone not in time_zones():
        raise InvalidRequest(
            "'time_zone' is an IANA name, such as Europe/Rome or UTC.", param="time_zone"
        )


def grouping_of(sources: Sources, query: AggregateQuery) -> Grouping | None:
    """By what the records are grouped, if they are.

    Raises: InvalidRequest, UnknownField, FieldNotGranted.
    """
    if query.group_by is not None:
        return Grouping(query.group_by, _group_kind(sources, query.group_by, "group_by"))
    if query.group_by_time is not None:
        return _time_grouping(sources, query, query.group_by_time)
    return None


def usable_kinds(source: ReadableSource) -> Mapping[str, tuple[str, ...]]:
    """Per metric or grouping the granted fields it is declared for (`count`: itself)."""
    declared = source.declared.aggregations
    kinds = ("sum", "min", "max", "count_distinct", "group_by", "group_by_time")
    usable = {
        kind: tuple(n for n in _declared_for(declared, kind) if n in source.fields)
        for kind in kinds
    }
    return {"count": ("count",) if declared.count else (), **usable}


def _declared_for(declared: Aggregations, kind: str) -> tuple[str, ...]:
    return getattr(declared, kind)


def _group_kind(sources: Sources, name: str, param: str) -> ValueKind:
    found = require_field(sources, name, param)
    if name not in _declared_for(sources[0].declared.aggregations, param) or found.kind is None:
        raise _undeclared(param, sources, usable_kinds(sources[0])[param])
    return found.kind


def _time_grouping(sources: Sources, query: AggregateQuery, name: str) -> Grouping:
    kind = _group_kind(sources, name, "group_by_time")
    allowed = _DAY_AND_COARSER if kind is ValueKind.DATE else tuple(Granularity)
    words = [granularity.value for granularity in allowed]
    if query.granularity not in words:
        raise InvalidRequest(
            f"'granularity' for '{name}' is one of {', '.join(words)}.",
            param="granularity",
            allowed_values=words,
        )
    return Grouping(name, kind, Granularity(query.granularity), query.time_zone or "UTC")


@cache
def time_zones() -> frozenset[str]:
    """All IANA names, from the time zone data we ship with."""
    return frozenset(files("tzdata").joinpath("zones").read_text("utf-8").split())


def _undeclared(param: str, sources: Sources, allowed: Iterable[str]) -> InvalidRequest:
    values = [str(value) for value in allowed]
    return InvalidRequest(
        f"'{sources[0].stream}' does not declare this aggregation.",
        param=param,
        allowed_values=values or None,
    )
