"""Aggregates: metrics and groupings that are declared and granted.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from pdpp_kernel.aggregations import FIGURES_OF_FIELDS, DeclaredGrouping, Granularity, Metric
from pdpp_kernel.criteria import Condition, Grouping, WordQuery
from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import (
    FieldNotGranted,
    InvalidFilter,
    InvalidRequest,
    PersonalServerError,
    UnknownField,
)
from pdpp_kernel.values import NUMBERS, ValueKind
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource
from personal_server.domain.skipped_sources import DECLARED_OTHERWISE, skipped
from personal_server.enforcement.asked_times import whole_days
from personal_server.enforcement.conditions import conditions_on
from personal_server.enforcement.fields import require_field
from personal_server.enforcement.queries import DEFAULT_GROUPS, MAX_GROUPS, AggregateQuery
from personal_server.enforcement.search import checked_words, searchable_fields

# Groups by connection, where no field of the stream is called so.
BY_CONNECTION = "connection_id"
# Up to 15 digits before the point and 9 after it: every bound is then a plain number.
_WIDTH = re.compile(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?")
# Metrics that no declaration lists: numbers with a sum, a least or a greatest value have them.
_UNDECLARED = frozenset(each for each in Metric if not each.is_declared)

Sources = tuple[ReadableSource, ...]


class Figure(msgspec.Struct, frozen=True):
    """What is computed, for sources of one declaration: the part of a plan that fields decide."""

    metric: Metric
    field: str | None
    field_kind: ValueKind | None
    groupings: tuple[Grouping, ...]
    conditions: tuple[Condition, ...]


def figure_of(sources: Sources, query: AggregateQuery) -> Figure:
    """What is asked, as these sources declare and grant it.

    Raises: InvalidRequest, UnknownField, FieldNotGranted, InvalidFilter.
    """
    metric, field, kind = _metric_of(sources, query)
    groupings = _groupings_of(sources, query)
    if query.text is not None and not all(searchable_fields(source) for source in sources):
        raise InvalidRequest(
            "This access has no searchable field. Leave 'q' out, or use 'filter'.", param="q"
        )
    return Figure(
        metric, field, kind, groupings, conditions_on(sources, query.filters, query.time_zone)
    )


def shared_figure(
    sources: Sources, query: AggregateQuery
) -> tuple[Sources, Figure, tuple[Warning, ...]]:
    """Which of sources with declarations and grants of their own take part, and in what.

    Raises: as `figure_of`, where none can.
    """
    taking_part: list[ReadableSource] = []
    figures: list[Figure] = []
    warnings: list[Warning] = []
    errors: list[PersonalServerError] = []
    for source in sources:
        try:
            figure = figure_of((source,), query)
        except (UnknownField, FieldNotGranted, InvalidFilter, InvalidRequest) as error:
            errors.append(error)
            warnings.append(skipped(source, error.code))
            continue
        if figures and _unlabelled(figure) != _unlabelled(figures[0]):
            warnings.append(skipped(source, DECLARED_OTHERWISE))
            continue
        taking_part.append(source)
        figures.append(figure)
    if not figures:
        raise errors[0]
    agree = all(figure == figures[0] for figure in figures)
    shared = figures[0] if agree else _unlabelled(figures[0])
    return tuple(taking_part), shared, tuple(warnings)


def _unlabelled(figure: Figure) -> Figure:
    """Labels are shown where every source that takes part grants them."""
    plain = (
        replace(each, label_field=None, mark_field=None, days=None) for each in figure.groupings
    )
    return replace(figure, groupings=tuple(plain))


def words_of(query: AggregateQuery) -> WordQuery | None:
    """What records must hold.  Raises: InvalidRequest."""
    return None if query.text is None else checked_words(query.text)


def limit_of(query: AggregateQuery) -> int:
    """How many groups are returned."""
    if query.limit is not None:
        return query.limit
    is_wide = query.then_by or query.bin or query.group_by_time
    return MAX_GROUPS if is_wide else DEFAULT_GROUPS


def check_combination(query: AggregateQuery) -> None:
    """Which parameters go together.  Raises: InvalidRequest."""
    counts = query.metric == Metric.COUNT.value
    if counts and query.field is not None:
        raise InvalidRequest("'count' takes no field; leave 'field' out.", param="field")
    if not counts and query.field is None:
        raise InvalidRequest(f"'{query.metric}' needs a 'field'.", param="field")
    if query.then_by is not None and query.group_by_time is not None:
        raise InvalidRequest(
            (
                "Groups can have at most two levels: 'group_by' with 'then_by' or with "
                "'group_by_time'."
            ),
            param="then_by",
        )
    if query.then_by is not None and query.then_by == query.group_by:
        raise InvalidRequest("'then_by' must name another field than 'group_by'.", param="then_by")
    by_field = {"then_by": query.then_by, "bin": query.bin}
    by_time = {"granularity": query.granularity}
    for needed, dependent in (("group_by", by_field), ("group_by_time", by_time)):
        for name, value in dependent.items():
            if value is not None and getattr(query, needed) is None:
                raise InvalidRequest(f"'{name}' needs '{needed}'.", param=name)
    if query.sort is not None and query.group_by is None and query.group_by_time is None:
        raise InvalidRequest("'sort' works only with groups.", param="sort")
    if query.across is not None and query.selectors.connection_id is not None:
        raise InvalidRequest(
            ("'across' reads all connections. Leave out either 'across' or 'connection_id'."),
            param="across",
        )


def usable_kinds(source: ReadableSource) -> Mapping[str, tuple[str, ...]]:
    """Per metric or grouping the granted fields it may be used with (`count`: itself)."""
    declared = source.declared
    usable = {
        figure.value: tuple(n for n in fields_for(declared, figure) if n in source.fields)
        for figure in FIGURES_OF_FIELDS
    }
    count = Metric.COUNT.value
    return {count: (count,) if declared.aggregations.count else (), **usable}


def fields_for(declared: Stream, kind: str) -> tuple[str, ...]:
    """The fields that a metric or grouping may be used with, whoever may see them."""
    if kind == DeclaredGrouping.BY_VALUE.value:
        return declared.groupable
    if kind in _UNDECLARED:
        return declared.averaged
    return getattr(declared.aggregations, kind)


def _metric_of(
    sources: Sources, query: AggregateQuery
) -> tuple[Metric, str | None, ValueKind | None]:
    """The metric, its field and the field's kind."""
    metric = Metric(query.metric)
    declared = sources[0].declared
    usable = usable_kinds(sources[0])
    if query.field is None:
        if not declared.aggregations.count:
            raise _undeclared("metric", sources, [m for m in Metric if usable.get(m.value)])
        return metric, None, None
    found = require_field(sources, query.field, "field")
    fields = fields_for(declared, metric.value)
    if query.field not in fields:
        raise _undeclared("field", sources, [n for n in fields if n in sources[0].fields])
    return metric, query.field, found.kind


def _groupings_of(sources: Sources, query: AggregateQuery) -> tuple[Grouping, ...]:
    found: list[Grouping] = []
    if query.group_by is not None:
        found.append(_field_grouping(sources, query.group_by, "group_by", query.bin))
    if query.then_by is not None:
        found.append(_field_grouping(sources, query.then_by, "then_by"))
    if query.group_by_time is not None:
        found.append(_time_grouping(sources, query, query.group_by_time))
    return tuple(found)


def _field_grouping(
    sources: Sources, name: str, param: str, bin_width: str | None = None
) -> Grouping:
    declared = sources[0].declared
    if name == BY_CONNECTION and name not in declared.properties:
        if bin_width is not None:
            raise InvalidRequest("'bin' needs a number field in 'group_by'.", param="bin")
        return Grouping(None, ValueKind.STRING)
    if name not in declared.properties and (by_time := _by_time(sources, name)) is not None:
        usable = usable_kinds(sources[0])["group_by"]
        raise _undeclared(param, sources, usable, {param: None, **by_time})
    found = require_field(sources, name, param)
    kind = ValueKind.STRING if found.is_list else found.kind
    if name not in declared.groupable or kind is None:
        usable = usable_kinds(sources[0])["group_by"]
        if name in declared.aggregations.group_by_time and bin_width is None:
            by_month = {"group_by_time": name, "granularity": Granularity.MONTH.value}
            raise _undeclared(param, sources, usable, {param: None, **by_month})
        meant = [n for n in usable if declared.properties[n].label_field == name]
        raise _undeclared(param, sources, usable, {param: meant[0]} if meant else None)
    if bin_width is not None:
        return Grouping(name, kind, bin_width=_bin_width(kind, bin_width))
    if found.is_list:
        return Grouping(name, kind, is_list=True)
    return Grouping(
        name,
        kind,
        label_field=_granted_text(sources, found.label_field),
        mark_field=_granted_text(sources, found.mark_field),
    )


def _by_time(sources: Sources, name: str) -> dict[str, str] | None:
    """What groups by `month` and the like mean, where that names no field."""
    declared = sources[0].declared
    time = declared.event_time_field
    if time is None or not all(time in source.fields for source in sources):
        return None
    kind = declared.properties[time].kind
    is_usable = time in declared.aggregations.group_by_time and kind is not None
    if not is_usable or name not in [g.value for g in Granularity if kind in g.kinds]:
        return None
    return {"group_by_time": time, "granularity": name}


def _bin_width(kind: ValueKind, text: str) -> Decimal:
    if kind not in NUMBERS:
        raise InvalidRequest("'bin' needs a number field in 'group_by'.", param="bin")
    if _WIDTH.fullmatch(text) is None:
        raise InvalidRequest(
            "'bin' is the width of a step, such as 5 or 0.25; with 0 the server chooses the width.",
            param="bin",
        )
    return Decimal(text)


def _granted_text(sources: Sources, name: str | None) -> str | None:
    """What says more of an id, if every source declares and grants it as a string."""
    if name is None or not all(name in source.fields for source in sources):
        return None
    declared = sources[0].declared.properties[name]
    return name if declared.kind is ValueKind.STRING else None


def _time_grouping(sources: Sources, query: AggregateQuery, name: str) -> Grouping:
    found = require_field(sources, name, "group_by_time")
    kind, usable = found.kind, usable_kinds(sources[0])["group_by_time"]
    if name not in sources[0].declared.aggregations.group_by_time or kind is None:
        raise _undeclared("group_by_time", sources, usable)
    words = [each.value for each in Granularity if kind in each.kinds]
    if query.granularity not in words:
        raise InvalidRequest(
            f"'granularity' for '{name}' is one of {', '.join(words)}.",
            param="granularity",
            allowed_values=words,
        )
    granularity = Granularity(query.granularity)
    days = whole_days(found, sources, query.time_zone)
    return Grouping(name, kind, granularity, query.time_zone or "UTC", days=days)


_NO_GROUPS = {
    "group_by": "cannot be grouped by this field",
    "then_by": "cannot be grouped by this field",
    "group_by_time": "has no groups by this time",
}


def _undeclared(
    param: str,
    sources: Sources,
    allowed: Iterable[str],
    recovery: Mapping[str, str | None] | None = None,
) -> InvalidRequest:
    values = [str(value) for value in allowed]
    return InvalidRequest(
        f"'{sources[0].stream}' {_NO_GROUPS.get(param, 'has no such figure of this field')}.",
        param=param,
        allowed_values=values or None,
        recovery=recovery,
    )
