"""How many records there were on each day of a year, and in each year.

Rule: it takes the road of an aggregate, under the authority of the owner, whose figures are kept as
long as nothing is written; days and years are those of the owner's zone, and a date without a time
is the same day in each.  For days of UTC rows of whole days are kept
(`storage/sql/reads/summary_segments.py`), so that a year costs the same however many records it
has; those of another zone are counted from an index.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, date
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.declaration import Property
from pdpp_kernel.operators import Operator
from pdpp_kernel.texts import local_moment
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.local_days import UTC_NAMES
from personal_server.enforcement.authorize import authorize_aggregate
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import MAX_GROUPS, AggregateQuery, Selectors
from personal_server.enforcement.timeline import time_field
from personal_server.storage.derived import once
from personal_server.storage.ports.snapshots import ReadSnapshot

MOST_DAYS = 366
_EPOCH = date(1970, 1, 1).toordinal()
_RANGE = {Operator.GTE.value, Operator.LT.value}


class CountedTimes(msgspec.Struct, frozen=True):
    """Records by day or year.  Shapes: `uncounted` are sources whose times cannot be counted."""

    counts: Mapping[int, int]
    uncounted: tuple[ReadableSource, ...] = ()


def year_counts(snapshot: ReadSnapshot, authority: ReadAuthority, zone: ZoneInfo) -> CountedTimes:
    """By year of a zone, as the owner.  Raises: QueryTimeout."""
    return _counted(snapshot, authority, None, zone)


def day_counts(
    snapshot: ReadSnapshot, authority: ReadAuthority, year: int, zone: ZoneInfo
) -> CountedTimes:
    """By day since 1970, of one year of a zone, as the owner.  Raises: QueryTimeout."""
    return _counted(snapshot, authority, year, zone)


def _counted(
    snapshot: ReadSnapshot, authority: ReadAuthority, year: int | None, zone: ZoneInfo
) -> CountedTimes:
    """By day of a year, or by year without one."""
    counts, uncounted = Counter[int](), list[ReadableSource]()
    for source in authority.sources:
        dated = time_field(source)
        if dated is None:
            continue
        if not _is_counted(source, dated.name):
            uncounted.append(source)
            continue
        key = ("counted times", source.order, year, zone.key)

        def ask(source: ReadableSource = source, time: Property = dated) -> Mapping[int, int]:
            return dict(_of_source(snapshot, authority, source, time, year, zone))

        counts.update(once(snapshot.derived, key, ask))
    return CountedTimes(counts, tuple(uncounted))


def _is_counted(source: ReadableSource, time: str) -> bool:
    declared = source.declared
    return (
        declared.aggregations.count
        and time in declared.aggregations.group_by_time
        and set(declared.range_filters.get(time, ())) >= _RANGE
    )


def _of_source(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    source: ReadableSource,
    time: Property,
    year: int | None,
    zone: ZoneInfo,
) -> Iterator[tuple[int, int]]:
    where = UTC if time.kind is ValueKind.DATE or zone.key in UTC_NAMES else zone
    bounds = () if year is None else ((Operator.GTE, year), (Operator.LT, year + 1))
    query = AggregateQuery(
        source.stream,
        "count",
        Selectors(source.connection_id),
        group_by_time=time.name,
        granularity="day" if year is not None else "year",
        time_zone=None if where is UTC else zone.key,
        filters=tuple(
            FilterText(time.name, operator.value, f"{bound:04}-01-01") for operator, bound in bounds
        ),
    )
    plan = authorize_aggregate(authority, query).plan
    limit = MAX_GROUPS if year is None else MOST_DAYS
    for group in snapshot.aggregate(replace(plan, limit=limit)).groups:
        (start_ns,) = group.keys
        if isinstance(start_ns, int):
            day = local_moment(start_ns, where).date()
            yield (day.toordinal() - _EPOCH if year is not None else day.year), group.count
