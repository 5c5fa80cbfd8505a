"""Aggregating: one exact metric over visible records, perhaps grouped.

Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from personal_server.domain.authority import ReadAuthority
from personal_server.domain.criteria import Granularity, Grouping, Metric
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import Answer
from personal_server.domain.values import NANOSECONDS
from personal_server.enforcement.authorize import authorize_aggregate
from personal_server.enforcement.disclose import identity
from personal_server.enforcement.plans import AggregateTerms, AuthorizedRead, plan_aggregate
from personal_server.enforcement.queries import AggregateQuery
from personal_server.enforcement.rows import Aggregation, Group
from personal_server.reading.freshness import least_fresh
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import unavailable_meta
from personal_server.storage.ports import ReadSnapshot

# How much of the local ISO form names a bucket; day and coarser: the day.
_LABEL_CHARS = {Granularity.MINUTE: 16, Granularity.HOUR: 16}
_DAY_CHARS = 10


def read_aggregate(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: AggregateQuery,
) -> Answer:
    """The aggregate.  Raises: what `authorize_aggregate` raises, QueryTimeout."""
    read = authorize_aggregate(authority, query)
    found = snapshot.aggregate(plan_aggregate(read))
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    meta = unavailable_meta(authority, query.selectors)
    if freshness is not None:
        meta["freshness"] = freshness
    used = _used_fields(read.terms)
    return Answer(
        data=_members(read, found),
        meta=meta,
        disclosed=[Disclosed(source, used, 0) for source in read.sources],
    )


def _members(read: AuthorizedRead[AggregateTerms], found: Aggregation) -> dict[str, object]:
    terms = read.terms
    grouping = terms.grouping
    timed = grouping is not None and grouping.granularity is not None
    members: dict[str, object] = {
        "object": "aggregation",
        "stream": read.sources[0].stream,
        "metric": terms.metric.value,
        "field": terms.field,
        "group_by": grouping.field if grouping and not timed else None,
        "group_by_time": grouping.field if grouping and timed else None,
        "granularity": grouping.granularity.value if grouping and grouping.granularity else None,
        "time_zone": grouping.time_zone if grouping and timed else None,
        "approximate": False,
        "filtered_record_count": found.record_count,
    }
    if grouping is None:
        members["value"] = found.value
    else:
        members |= _grouped(terms, grouping, found)
    if len(read.sources) == 1:
        members |= identity(read.authority, read.sources[0])
    return members


def _grouped(terms: AggregateTerms, grouping: Grouping, found: Aggregation) -> dict[str, object]:
    members: dict[str, object] = {
        "group_count": found.group_count,
        "groups": [_group(terms, grouping, group) for group in found.groups],
        "limit": terms.limit,
        "other_count": found.other_count,
    }
    if terms.metric is Metric.SUM:
        members["other_value"] = found.other_value
    return members


def _group(terms: AggregateTerms, grouping: Grouping, group: Group) -> dict[str, object]:
    members: dict[str, object] = {"key": group.key}
    if grouping.granularity is not None:
        members = _bucket(grouping, grouping.granularity, group.key)
    members["count"] = group.count
    if terms.metric is not Metric.COUNT:
        members["value"] = group.value
    return members


def _bucket(grouping: Grouping, granularity: Granularity, key: object) -> dict[str, object]:
    """The local label of a bucket and its start with the zone's offset."""
    if not isinstance(key, int):
        return {"key": None, "start": None}
    moment = _local(key, grouping.time_zone)
    start = moment.isoformat()
    return {"key": start[: _LABEL_CHARS.get(granularity, _DAY_CHARS)], "start": start}


def _local(instant_ns: int, time_zone: str) -> datetime:
    moment = datetime.fromtimestamp(instant_ns // NANOSECONDS, UTC)
    try:
        return moment.astimezone(ZoneInfo(time_zone))
    except OverflowError:  # a day at the very end of the calendar, in a zone beyond it
        return moment


def _used_fields(terms: AggregateTerms) -> tuple[str, ...]:
    grouped = (terms.grouping.field,) if terms.grouping else ()
    named = (terms.field,) if terms.field else ()
    filtered = (condition.field for condition in terms.conditions)
    return tuple(dict.fromkeys((*named, *grouped, *filtered)))
