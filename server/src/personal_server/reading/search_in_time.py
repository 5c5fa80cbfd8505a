"""Hits in the order of time: no ranking is made or kept, a page follows the one before it.

Source: docs/contract/resource-server.md 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from time import perf_counter

from msgspec.structs import replace

from pdpp_kernel.criteria import WordQuery
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.authorize import authorize_search_in_time
from personal_server.enforcement.authorized_reads import AuthorizedRead
from personal_server.enforcement.first_times import first_times_found
from personal_server.enforcement.plans import TimelinePlan
from personal_server.enforcement.queries import SearchQuery
from personal_server.enforcement.rows import PlacedRow
from personal_server.enforcement.search_hits import SoughtHit
from personal_server.reading.empty_answers import Emptiness
from personal_server.reading.freshness import least_fresh
from personal_server.reading.missing_values import without_value
from personal_server.reading.pace import leaves_at
from personal_server.reading.ports import ReadPorts
from personal_server.reading.recall import SearchCoverage, source_mix
from personal_server.reading.records import unavailable_meta
from personal_server.reading.shown_hits import (
    HitPage,
    clocks_meta,
    explain_search,
    found_nothing,
)
from personal_server.reading.timeline import time_cursor, time_position
from personal_server.storage.ports.snapshots import ReadSnapshot


def search_in_time(
    ports: ReadPorts, snapshot: ReadSnapshot, authority: ReadAuthority, query: SearchQuery
) -> ReadResult:
    """A page of hits, the newest or the oldest first.

    Raises: what `authorize_search_in_time` raises, InvalidCursor.
    """
    begun = perf_counter()
    read = authorize_search_in_time(authority, query)
    words = read.plan.words or WordQuery(())
    page = snapshot.timeline(replace(read.plan, after=time_position(ports, read, query.cursor)))
    shown = _shown_in_time(snapshot, read, page.rows, words, query)
    is_whole = shown.end == len(page.rows)
    cursor = None
    if page.more or not is_whole:
        last = page.rows[shown.end - 1].position if shown.end else None
        end = page.end if is_whole and page.end is not None else last
        cursor = None if end is None else time_cursor(ports, read, end)
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    emptiness = Emptiness()
    if query.cursor is None and not page.rows and read.sources:
        conditions = [timed.conditions for timed in read.plan.scopes]
        emptiness = explain_search(snapshot, read, conditions, freshness)
    searched = SearchCoverage(0, 0, len(read.sources))
    meta = source_mix(read, shown.sources, searched) | clocks_meta(query)
    if words.ignored:
        meta["ignored_words"] = list(words.ignored)
    if freshness is not None:
        meta["freshness"] = freshness
    return ReadResult(
        data=shown.hits,
        next_cursor=cursor,
        warnings=(
            *read.warnings,
            *without_value(
                read.sources, chain.from_iterable(each.conditions for each in read.plan.scopes)
            ),
            *first_times_found(authority, read.sources, query),
        ),
        meta=meta | unavailable_meta(authority, query.selectors) | emptiness.meta,
        disclosed=shown.disclosed() or [*found_nothing(read.sources), *emptiness.disclosed],
        leaves_at=leaves_at(begun, snapshot, [timed.scope for timed in read.plan.scopes], words),
    )


def _shown_in_time(
    snapshot: ReadSnapshot,
    read: AuthorizedRead[TimelinePlan],
    rows: Sequence[PlacedRow],
    words: WordQuery,
    query: SearchQuery,
) -> HitPage:
    page, sources = HitPage(snapshot, read, query), {s.order: s for s in read.sources}
    for placed in rows:
        if not page.takes(sources[placed.position.place], placed.row, SoughtHit(words)):
            break
        page.end += 1
        if page.is_spent:
            break
    return page
