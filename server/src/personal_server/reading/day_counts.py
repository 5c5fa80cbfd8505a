"""How many records there were on each day of a year, and in each year.

Rule: it takes the road of an aggregate, under the authority of the owner, whose figures are kept as
long as nothing is written; days are those of UTC, since rows of whole days are kept for them
(`storage/sql/reads/summary_segments.py`), so that a year costs the same however many records it
has.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from pdpp_kernel.operators import Operator
from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.authorize import authorize_aggregate
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import MAX_GROUPS, AggregateQuery, Selectors
from personal_server.enforcement.timeline import time_field
from personal_server.storage.derived import once
from personal_server.storage.ports.snapshots import ReadSnapshot

MOST_DAYS = 366
_RANGE = {Operator.GTE.value, Operator.LT.value}


@dataclass(frozen=True, slots=True)
class CountedTimes:
    """Records by day or year.  Shapes: `uncounted` are sources whose times cannot be counted."""

    counts: Mapping[int, int]
    uncounted: tuple[ReadableSource, ...] = ()


def year_counts(snapshot: ReadSnapshot, authority: ReadAuthority) -> CountedTimes:
    """By year, as the owner.  Raises: QueryTimeout."""
    return _counted(snapshot, authority, None)


def day_counts(snapshot: ReadSnapshot, authority: ReadAuthority, year: int) -> CountedTimes:
    """By day since 1970, of one year, as the owner.  Raises: QueryTimeout."""
    return _counted(snapshot, authority, year)


def _counted(snapshot: ReadSnapshot, authority: ReadAuthority, year: int | None) -> CountedTimes:
    """By day of a year, or by year without one."""
    counts, uncounted = Counter[int](), list[ReadableSource]()
    for source in authority.sources:
        dated = time_field(source)
        if dated is None:
            continue
        if not _is_counted(source, dated.name):
            uncounted.append(source)
            continue

        def ask(source: ReadableSource = source, time: str = dated.name) -> Mapping[int, int]:
            return dict(_of_source(snapshot, authority, source, time, year))

        counts.update(once(snapshot.derived, ("counted times", source.order, year), ask))
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
    time: str,
    year: int | None,
) -> Iterator[tuple[int, int]]:
    bounds = () if year is None else ((Operator.GTE, year), (Operator.LT, year + 1))
    query = AggregateQuery(
        source.stream,
        "count",
        Selectors(source.connection_id),
        group_by_time=time,
        granularity="day" if year is not None else "year",
        filters=tuple(
            FilterText(time, operator.value, f"{bound:04}-01-01") for operator, bound in bounds
        ),
    )
    plan = authorize_aggregate(authority, query).plan
    limit = MAX_GROUPS if year is None else MOST_DAYS
    for group in snapshot.aggregate(replace(plan, limit=limit)).groups:
        (start_ns,) = group.keys
        if isinstance(start_ns, int):
            day = start_ns // DAY_NANOSECONDS
            yield (day if year is not None else _year_of(day)), group.count


def _year_of(day: int) -> int:
    return date.fromordinal(date(1970, 1, 1).toordinal() + day).year
