"""The time line: records of all streams in one order of time, page by page.

Source: docs/contract/resource-server.md 7.9.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from personal_server.domain.authority import ReadAuthority
from personal_server.domain.cursor import (
    CursorPlace,
    TokenUse,
    open_page,
    request_digest,
    seal_place,
    sources_digest,
)
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.authorize import authorize_timeline
from personal_server.enforcement.authorized_reads import AuthorizedRead
from personal_server.enforcement.local_times import clock_of
from personal_server.enforcement.page_sizes import PageFill
from personal_server.enforcement.plans import TimelinePlan
from personal_server.enforcement.queries import TimelineQuery
from personal_server.enforcement.rows import PlacedRow, Position
from personal_server.enforcement.timeline_entries import disclose_entry, timeline_fields
from personal_server.reading.empty_answers import explain_empty
from personal_server.reading.freshness import least_fresh
from personal_server.reading.occurrences import page_of_line
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import unavailable_meta
from personal_server.storage.ports.snapshots import ReadSnapshot


def read_timeline(
    ports: ReadPorts, snapshot: ReadSnapshot, authority: ReadAuthority, query: TimelineQuery
) -> ReadResult:
    """A page of the time line.

    Raises: what `authorize_timeline` raises, InvalidCursor, QueryTimeout.
    """
    read = authorize_timeline(authority, query)
    after = time_position(ports, read, query.cursor)
    page, folded = page_of_line(snapshot, read, after)
    sources = {source.order: source for source in read.sources}
    clocks = {s.order: clock_of(s, query.time_zone, s.fields) for s in read.sources}
    fill = PageFill(query.size)
    for placed in page.rows:
        source, when = sources[placed.position.place], clocks[placed.position.place](placed.row)
        if not fill.takes(disclose_entry(authority, source, placed.row, when)):
            break
    shown = page.rows[: len(fill.items)]
    is_whole = len(shown) == len(page.rows)
    cursor = None
    if page.more or not is_whole:
        end = page.end if is_whole and page.end is not None else shown[-1].position
        cursor = time_cursor(ports, read, end)
    meta = unavailable_meta(authority, query.selectors)
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    if freshness is not None:
        meta["freshness"] = freshness
    if query.time_zone is not None:
        meta["time_zone"] = query.time_zone
    if not page.rows and query.cursor is None:
        asked = tuple(each for timed in read.plan.scopes for each in timed.conditions)
        meta |= explain_empty(snapshot, read.sources, asked, read.warnings, freshness).meta
    return ReadResult(
        data=fill.items,
        next_cursor=cursor,
        warnings=(*read.warnings, *folded),
        meta=meta,
        disclosed=_disclosed(read, shown),
    )


def _disclosed(read: AuthorizedRead[TimelinePlan], shown: Sequence[PlacedRow]) -> list[Disclosed]:
    keys: dict[tuple[str, str], list[str]] = {}
    for placed in shown:
        keys.setdefault(placed.position.place, []).append(placed.position.key)
    return [
        Disclosed(source, timeline_fields(source), len(found), tuple(found))
        for source in read.sources
        if (found := keys.get(source.order))
    ]


def _request(read: AuthorizedRead[TimelinePlan]) -> str:
    return request_digest(read.authority.cursor_holder, "timeline", read.asked)


def time_position(
    ports: ReadPorts, read: AuthorizedRead[TimelinePlan], token: str | None
) -> Position | None:
    """Where a page goes on, of the cursor of the one before.  Raises: InvalidCursor."""
    if token is None:
        return None
    request = _request(read)
    place = open_page(ports.sealer, TokenUse.PAGE, token, request, read.authority, read.sources)
    at_ns, key, source = cast("tuple[int, str, int]", place.position)
    return Position(at_ns, key, *read.sources[source].order)


def time_cursor(ports: ReadPorts, read: AuthorizedRead[TimelinePlan], end: Position) -> str:
    """A cursor right after the last entry shown, and after damaged records at the end."""
    source = [each.order for each in read.sources].index(end.place)
    position = (end.value, end.key, source)
    place = CursorPlace(_request(read), sources_digest(read.sources), position)
    return seal_place(ports.sealer, TokenUse.PAGE, place)
