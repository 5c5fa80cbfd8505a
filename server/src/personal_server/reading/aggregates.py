"""Aggregating: one exact metric over visible records, perhaps grouped.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from time import perf_counter
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from pdpp_kernel.aggregations import Granularity, Metric
from pdpp_kernel.criteria import Grouping, GroupOrder
from pdpp_kernel.texts import local_moment
from pdpp_kernel.values import render_number
from pdpp_kernel.wire_objects import (
    ConnectionId,
    Count,
    Instant,
    No,
    RawNumber,
    WireObject,
    Word,
    raw_json,
)
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.aggregates import BY_CONNECTION
from personal_server.enforcement.authorize import authorize_aggregate
from personal_server.enforcement.authorized_reads import AuthorizedRead
from personal_server.enforcement.disclose import identity
from personal_server.enforcement.first_times import first_times_only
from personal_server.enforcement.plans import AggregatePlan
from personal_server.enforcement.queries import AggregateQuery
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.enforcement.search import searchable_fields
from personal_server.reading.empty_answers import Emptiness, explain_empty
from personal_server.reading.freshness import least_fresh
from personal_server.reading.missing_values import without_value
from personal_server.reading.pace import leaves_at
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import unavailable_meta
from personal_server.reading.units import Units, units_of_figure
from personal_server.reading.value_twins import value_twins
from personal_server.storage.ports.snapshots import ReadSnapshot

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class ShownGroup(WireObject, kw_only=True):
    """One group of an aggregate, or one stretch of time."""

    key: msgspec.Raw
    label: str | msgspec.UnsetType = msgspec.UNSET
    until: RawNumber | msgspec.UnsetType | None = msgspec.UNSET
    then: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    then_label: str | msgspec.UnsetType = msgspec.UNSET
    start: Instant | msgspec.UnsetType | None = msgspec.UNSET
    count: Count
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value_count: Count | msgspec.UnsetType = msgspec.UNSET
    unit: str | msgspec.UnsetType = msgspec.UNSET


class ShownAggregation(WireObject, kw_only=True, tag_field="object", tag="aggregation"):
    """A metric over the visible records of a stream."""

    stream: Word
    metric: Metric
    field: Word | None
    group_by: Word | None
    then_by: Word | msgspec.UnsetType = msgspec.UNSET
    group_by_time: Word | None
    granularity: str | None
    time_zone: str | None
    bin: RawNumber | msgspec.UnsetType = msgspec.UNSET
    sort: GroupOrder | msgspec.UnsetType = msgspec.UNSET
    approximate: No
    filtered_record_count: Count
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    value_count: Count | msgspec.UnsetType = msgspec.UNSET
    unit: str | msgspec.UnsetType = msgspec.UNSET
    group_count: Count | None = None
    groups: Sequence[ShownGroup] | None = None
    limit: Count | None = None
    other_count: Count | None = None
    other_value: RawNumber | msgspec.UnsetType | None = msgspec.UNSET
    connection_id: ConnectionId | None = None
    connector_key: Word | None = None
    display_name: str | None = None
    grant_id: str | None = None


def read_aggregate(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: AggregateQuery,
) -> ReadResult:
    """The aggregate.  Raises: what `authorize_aggregate` raises, QueryTimeout."""
    begun = perf_counter()
    read = authorize_aggregate(authority, query)
    found = snapshot.aggregate(read.plan)
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    meta = unavailable_meta(authority, query.selectors)
    if freshness is not None:
        meta["freshness"] = freshness
    units = units_of_figure(snapshot, read, found)
    if query.time_zone is not None:
        meta["time_zone"] = query.time_zone
    emptiness = Emptiness()
    if found.record_count == 0:
        emptiness = explain_empty(
            snapshot, read.sources, read.plan.conditions, read.warnings, freshness
        )
    elif read.plan.conditions and read.plan.words is None:
        emptiness = value_twins(snapshot, read.sources, read.plan.conditions)
    return ReadResult(
        data=_aggregation(read, found, units),
        warnings=(
            *read.warnings,
            *units.warnings,
            *without_value(read.sources, read.plan.conditions),
            *first_times_only(authority, read.sources, _named_fields(query)),
        ),
        meta=meta | emptiness.meta,
        disclosed=[
            *(
                Disclosed(source, _used_fields(read.plan, source, units), 0)
                for source in read.sources
            ),
            *emptiness.disclosed,
        ],
        leaves_at=leaves_at(begun, snapshot, read.plan.scopes, read.plan.words)
        if read.plan.words
        else None,
    )


def _named_fields(query: AggregateQuery) -> set[str]:
    """The fields that a request names."""
    groups = (query.group_by, query.then_by, query.group_by_time)
    named = {query.field, *groups, *(each.field for each in query.filters)}
    return {name for name in named if name is not None}


def _aggregation(
    read: AuthorizedRead[AggregatePlan], found: Aggregation, units: Units
) -> ShownAggregation:
    plan = read.plan
    timed = None if plan.timed is None else plan.groupings[plan.timed]
    plain = [_named(each) for each in plan.groupings if each is not timed]
    shown = ShownAggregation(
        stream=read.sources[0].stream,
        metric=plan.metric,
        field=plan.field,
        group_by=plain[0] if plain else None,
        group_by_time=timed.field if timed else None,
        granularity=timed.granularity.value if timed and timed.granularity else None,
        time_zone=timed.time_zone if timed else None,
        approximate=False,
        filtered_record_count=found.record_count,
        **(identity(read.authority, read.sources[0]) if len(read.sources) == 1 else {}),
    )
    if len(plain) > 1:
        shown.then_by = plain[1]
    if plan.sort is not None:
        shown.sort = plan.sort
    if plan.groupings:
        _add_groups(shown, read, found, units)
    else:
        shown.value = raw_json(found.value)
        if found.value_count is not None:
            shown.value_count = found.value_count
        shown.unit = units.whole or msgspec.UNSET
    return shown


def _named(grouping: Grouping) -> str:
    return grouping.field or BY_CONNECTION


def _add_groups(
    shown: ShownAggregation, read: AuthorizedRead[AggregatePlan], found: Aggregation, units: Units
) -> None:
    plan = read.plan
    if found.bin_width is not None:
        found_width = Fraction(found.bin_width)
        shown.bin = raw_json(render_number(found_width))
    else:
        found_width = Fraction(0)
    shown.group_count = found.group_count
    shown.groups = [_group(read, group, found_width, units) for group in found.groups]
    shown.limit = plan.limit
    shown.other_count = found.other_count
    if plan.metric is Metric.SUM and not _mixes_units(plan, found, units):
        shown.other_value = raw_json(found.other_value)
        shown.unit = units.whole or msgspec.UNSET


def _mixes_units(plan: AggregatePlan, found: Aggregation, units: Units) -> bool:
    """Whether groups that each have a unit of their own are left out, and are no one sum."""
    is_by_unit = any(grouping.field in units.fields for grouping in plan.groupings)
    return is_by_unit and found.group_count - len(found.groups) > 1


def _group(
    read: AuthorizedRead[AggregatePlan], group: Group, bin_width: Fraction, units: Units
) -> ShownGroup:
    plan = read.plan
    names = {source.connection_id: source.display_name for source in read.sources}
    sides = [
        _side(grouping, key, label, names)
        for grouping, key, label in zip(plan.groupings, group.keys, group.labels, strict=True)
    ]
    shown = ShownGroup(key=raw_json(sides[0].key), count=group.count)
    shown.label = sides[0].label
    if len(sides) > 1:
        shown.then, shown.then_label = raw_json(sides[1].key), sides[1].label
    if plan.time_line is not None:
        shown.start = sides[plan.time_line].start
    low = group.keys[0]
    if isinstance(low, Fraction):
        shown.until = raw_json(render_number(low + bin_width))
    elif bin_width:
        shown.until = None
    if plan.metric is not Metric.COUNT:
        shown.value = raw_json(group.value)
        shown.unit = units.of(group) or msgspec.UNSET
    if group.value_count is not None:
        shown.value_count = group.value_count
    return shown


class _Side(NamedTuple):
    """A key as it is shown, how people see it, and where a stretch of time begins."""

    key: object
    label: str | msgspec.UnsetType = msgspec.UNSET
    start: str | None = None


def _side(
    grouping: Grouping, key: object, label: str | None, names: Mapping[str, str | None]
) -> _Side:
    if grouping.field is None:
        return _Side(key, names.get(str(key)) or msgspec.UNSET)
    if isinstance(key, Fraction):
        return _Side(render_number(key))
    if grouping.granularity is None or not isinstance(key, int):
        return _Side(key, label or msgspec.UNSET)
    if grouping.granularity is Granularity.HOUR_OF_DAY:
        return _Side(f"{key:02}:00")
    if grouping.granularity is Granularity.WEEKDAY:
        return _Side(_WEEKDAYS[key])
    name, start = _bucket(grouping, grouping.granularity, key)
    return _Side(name, start=start)


def _bucket(grouping: Grouping, granularity: Granularity, key: int) -> tuple[str, str]:
    """The local label of a bucket and its start with the zone's offset."""
    moment = local_moment(key, ZoneInfo(grouping.time_zone))
    start = moment.isoformat()
    return start[: granularity.label_chars], start


def _used_fields(plan: AggregatePlan, source: ReadableSource, units: Units) -> tuple[str, ...]:
    named = (plan.field, *(grouping.field for grouping in plan.groupings))
    labels = (name for each in plan.groupings for name in (each.label_field, each.mark_field))
    filtered = (name for condition in plan.conditions for name in condition.fields)
    searched = searchable_fields(source) if plan.words else ()
    used = (*named, *labels, *filtered, *searched, *units.fields)
    return tuple(dict.fromkeys(name for name in used if name is not None))
