"""Reading records: authorize, fetch, disclose, in one snapshot.

Rule: these functions take (ports, authority, query) and nothing else decides what is read; the
answer names the sources it came from, for the caller to record.
Source: docs/contract/resource-server.md 7, 9.1.
"""

from __future__ import annotations

from itertools import islice
from typing import cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.values import Comparable
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.cursor import (
    CursorPlace,
    TokenUse,
    open_page,
    request_digest,
    seal_place,
    sources_digest,
)
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import Counted, ReadResult, name_unavailable
from personal_server.enforcement.authorize import authorize_records
from personal_server.enforcement.authorized_reads import AuthorizedRead, Shown
from personal_server.enforcement.disclose import (
    disclosed_records,
)
from personal_server.enforcement.first_times import first_times_only
from personal_server.enforcement.local_times import clocks_of
from personal_server.enforcement.page_sizes import PageFill
from personal_server.enforcement.plans import RecordsPlan
from personal_server.enforcement.queries import FieldSelection, RecordsQuery, Selectors
from personal_server.enforcement.rows import Position, RowPage
from personal_server.enforcement.timeline import ranged_time
from personal_server.reading.empty_answers import Emptiness, explain_empty
from personal_server.reading.expansions import Expansions, expand
from personal_server.reading.freshness import least_fresh
from personal_server.reading.ports import ReadPorts
from personal_server.storage.ports.snapshots import ReadSnapshot


def read_records(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    query: RecordsQuery,
) -> ReadResult:
    """A page of records.

    Raises: what `authorize_records` raises, InvalidCursor, QueryTimeout.
    """
    read = authorize_records(authority, query)
    page = snapshot.page(replace(read.plan, after=_position(ports, read, query.cursor)))
    expansions = expand(snapshot, authority, read.expansions, [p.row for p in page.rows])
    count, meta = _figures(snapshot, read.plan, query)
    freshness = least_fresh(snapshot, ports.capture_times, read.sources, ports.clock())
    if freshness is not None:
        meta["freshness"] = freshness
    meta |= unavailable_meta(authority, query.selectors)
    emptiness = Emptiness()
    if not page.rows and query.cursor is None:
        emptiness = explain_empty(
            snapshot, read.sources, read.plan.conditions, read.warnings, freshness
        )
    if query.time_zone is not None:
        meta["time_zone"] = query.time_zone
    if (ranged := ranged_time(read.sources, query.times)) is not None:
        meta["ranged_by"] = ranged
    beside, warnings = list[Disclosed](), read.warnings
    if read.plan.conditions and read.sources[0].declared.event_time_field:
        fields = {each.field for each in query.filters}
        warnings = (*warnings, *first_times_only(authority, read.sources, fields, query.times))
    if page.rows and (read.sources[0].declared.measured or read.plan.conditions):
        from personal_server.reading.units import notes_on_page  # noqa: PLC0415 (few reads)

        notes, mixed, beside = notes_on_page(snapshot, read, page.rows, query.cursor)
        meta, warnings = meta | notes, (*warnings, *mixed)
    records = _disclosed_page(read, page, expansions, query)
    following = page.more or len(records) < len(page.rows)
    return ReadResult(
        data=records,
        next_cursor=_cursor(ports, read, page, len(records)) if following else None,
        count=count,
        warnings=warnings,
        meta=meta | emptiness.meta,
        disclosed=[
            *_page_disclosed(
                read, page, len(records), expansions, figured=query.count or query.window
            ),
            *emptiness.disclosed,
            *beside,
        ],
    )


def unavailable_meta(authority: ReadAuthority, selectors: Selectors) -> dict[str, object]:
    """`meta.unavailable_connections` of reads that name no connection.  Source: 4.7."""
    if selectors.connection_id is not None or not authority.unavailable:
        return {}
    return name_unavailable(authority.unavailable)


def _figures(
    snapshot: ReadSnapshot, plan: RecordsPlan, query: RecordsQuery
) -> tuple[Counted | None, dict[str, object]]:
    """`meta.count` and `meta.window`, as far as they were asked for."""
    meta: dict[str, object] = {}
    total: int | None = None
    if query.window:
        span = snapshot.span(plan)
        total = span.total
        meta["window"] = {
            "total": span.total,
            "earliest_at": span.earliest,
            "latest_at": span.latest,
        }
    if not query.count:
        return None, meta
    total = snapshot.count(plan) if total is None else total
    return Counted("exact", total), meta


def _disclosed_page(
    read: AuthorizedRead[RecordsPlan], page: RowPage, expansions: Expansions, query: RecordsQuery
) -> list[msgspec.Raw]:
    """The records that fit, each already JSON; at least one."""
    rows = [placed.row for placed in page.rows]
    # in UTC a clock says of whole days alone what no record does
    is_said = query.time_zone not in (None, "UTC") or read.sources[0].declared.whole_days_field
    clocks = None
    if is_said and query.cut == FieldSelection():
        clocks = clocks_of(read, query.time_zone)
    disclosed = disclosed_records(read.authority, read.sources, read.shown, rows, clocks)
    fill = PageFill(query.size)
    for row, record in zip(rows, disclosed, strict=True):
        if read.expansions:
            record.expanded = expansions.by_parent[row.connection_id, row.key]
        if not fill.takes(record):
            break
    return fill.items


def _page_disclosed(
    read: AuthorizedRead[RecordsPlan],
    page: RowPage,
    shown_count: int,
    expansions: Expansions,
    *,
    figured: bool,
) -> list[Disclosed]:
    rows = [placed.row for placed in islice(page.rows, shown_count)]
    keys: dict[str, list[str]] = {}
    for row in rows:
        keys.setdefault(row.connection_id, []).append(row.key)
    named = (name for condition in read.plan.conditions for name in condition.fields)
    used = tuple(named) if figured else ()
    entries = [
        Disclosed(source, _names(read.shown, source, used), len(found), tuple(found))
        for source in read.sources
        if (found := keys.get(source.connection_id, [])) or figured
    ]
    return [*entries, *expansions.disclosed(rows)]


def _names(shown: Shown, source: ReadableSource, used: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*shown[source.connection_id], *used)))


def _request(read: AuthorizedRead[RecordsPlan]) -> str:
    return request_digest(read.authority.cursor_holder, "records", read.asked)


def _position(
    ports: ReadPorts, read: AuthorizedRead[RecordsPlan], token: str | None
) -> Position | None:
    if token is None:
        return None
    request = _request(read)
    place = open_page(ports.sealer, TokenUse.PAGE, token, request, read.authority, read.sources)
    value, key, source = cast("tuple[object, str, int]", place.position)
    stream = read.plan.scopes[0].stream.name
    return Position(_comparable(value), key, read.sources[source].connection_id, stream)


def _comparable(value: object) -> Comparable | None:
    return value if isinstance(value, bool | int | float | str) else None


def _cursor(ports: ReadPorts, read: AuthorizedRead[RecordsPlan], page: RowPage, shown: int) -> str:
    """A cursor right after the last record shown, and after damaged ones at the end."""
    is_whole = shown == len(page.rows)
    position = page.end if is_whole and page.end is not None else page.rows[shown - 1].position
    source = [each.connection_id for each in read.sources].index(position.connection_id)
    place = CursorPlace(
        _request(read), sources_digest(read.sources), (position.value, position.key, source)
    )
    return seal_place(ports.sealer, TokenUse.PAGE, place)
