"""Aggregating: one exact metric over visible records, perhaps grouped.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import msgspec

from personal_server.domain.authority import ReadAuthority
from personal_server.domain.criteria import Granularity, Grouping, Metric
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.domain.values import NANOSECONDS
from personal_server.domain.wire_objects import (
    ConnectionId,
    Count,
    Instant,
    No,
    RawNumber,
    WireObject,
    Word,
    raw_json,
)
from personal_server.enforcement.authorize import authorize_aggregate
from personal_server.enforcement.disclose import identity
from personal_server.enforcement.plans import AggregatePlan, AuthorizedRead
from personal_server.enforcement.queries import AggregateQuery
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.reading.freshness import least_fresh
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import unavailable_meta
from personal_server.storage.ports import ReadSnapshot

# How much of the local ISO form names a bucket; day and coarser: the day.
_LABEL_CHARS = {Granularity.MINUTE: 16, Granularity.HOUR: 16}
_DAY_CHARS = 10


class ShownGroup(WireObject, kw_only=True):
    """One group of an aggregate, or one stretch of time."""

    key: msgspec.Raw
    start: Instant | msgspec.UnsetType | None = msgspec.UNSET
    count: Count
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ShownAggregation(WireObject, kw_only=True, tag_field="object", tag="aggregation"):
    """A metric over the visible records of a stream."""

    stream: Word
    metric: Metric
    field: Word | None
    group_by: Word | None
    group_by_time: Word | None
    granularity: str | None
    time_zone: str | None
    approximate: No
    filtered_record_count: Count
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
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
    read = authorize_aggregate(authority, query)
    found = snapshot.aggregate(read.plan)
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    meta = unavailable_meta(authority, query.selectors)
    if freshness is not None:
        meta["freshness"] = freshness
    used = _used_fields(read.plan)
    return ReadResult(
        data=_aggregation(read, found),
        meta=meta,
        disclosed=[Disclosed(source, used, 0) for source in read.sources],
    )


def _aggregation(read: AuthorizedRead[AggregatePlan], found: Aggregation) -> ShownAggregation:
    plan = read.plan
    grouping = plan.grouping
    timed = grouping is not None and grouping.granularity is not None
    shown = ShownAggregation(
        stream=read.sources[0].stream,
        metric=plan.metric,
        field=plan.field,
        group_by=grouping.field if grouping and not timed else None,
        group_by_time=grouping.field if grouping and timed else None,
        granularity=grouping.granularity.value if grouping and grouping.granularity else None,
        time_zone=grouping.time_zone if grouping and timed else None,
        approximate=False,
        filtered_record_count=found.record_count,
        **(identity(read.authority, read.sources[0]) if len(read.sources) == 1 else {}),
    )
    if grouping is None:
        shown.value = raw_json(found.value)
    else:
        _add_groups(shown, plan, grouping, found)
    return shown


def _add_groups(
    shown: ShownAggregation, plan: AggregatePlan, grouping: Grouping, found: Aggregation
) -> None:
    shown.group_count = found.group_count
    shown.groups = [_group(plan, grouping, group) for group in found.groups]
    shown.limit = plan.limit
    shown.other_count = found.other_count
    if plan.metric is Metric.SUM:
        shown.other_value = raw_json(found.other_value)


def _group(plan: AggregatePlan, grouping: Grouping, group: Group) -> ShownGroup:
    shown = ShownGroup(key=raw_json(group.key), count=group.count)
    if grouping.granularity is not None:
        label, shown.start = _bucket(grouping, grouping.granularity, group.key)
        shown.key = raw_json(label)
    if plan.metric is not Metric.COUNT:
        shown.value = raw_json(group.value)
    return shown


def _bucket(
    grouping: Grouping, granularity: Granularity, key: object
) -> tuple[str | None, str | None]:
    """The local label of a bucket and its start with the zone's offset."""
    if not isinstance(key, int):
        return None, None
    moment = _local(key, grouping.time_zone)
    start = moment.isoformat()
    return start[: _LABEL_CHARS.get(granularity, _DAY_CHARS)], start


def _local(instant_ns: int, time_zone: str) -> datetime:
    moment = datetime.fromtimestamp(instant_ns // NANOSECONDS, UTC)
    try:
        return moment.astimezone(ZoneInfo(time_zone))
    except OverflowError:  # a day at the very end of the calendar, in a zone beyond it
        return moment


def _used_fields(plan: AggregatePlan) -> tuple[str, ...]:
    grouped = (plan.grouping.field,) if plan.grouping else ()
    named = (plan.field,) if plan.field else ()
    filtered = (condition.field for condition in plan.conditions)
    return tuple(dict.fromkeys((*named, *grouped, *filtered)))
