"""What answers the routes of reads: records, one record, a window of text, aggregates.

Source: docs/contract/resource-server.md 6 to 11, 20.
"""

from __future__ import annotations

from typing import ClassVar, TypeVar, cast

from pdpp_kernel.wire_objects import WireObject, Word
from personal_server.domain.cursor import TokenUse
from personal_server.domain.envelope import UNCOUNTED, ReadResult
from personal_server.enforcement.disclose import Record, Tombstone
from personal_server.enforcement.timeline_entries import TimelineEntry
from personal_server.reading.changes import follow
from personal_server.reading.field_windows import ShownFieldWindow, read_field_window
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_records
from personal_server.reading.timeline import read_timeline
from personal_server.resource_server.envelopes import (
    ListFront,
    ListOf,
    Meta,
    PageLinks,
    SelfLink,
    completed,
    meta_of,
    page_links,
    page_of,
)
from personal_server.resource_server.read_queries import (
    changes_query,
    field_window_query,
    record_query,
    records_query,
    snapshot_of,
    timeline_query,
    zone_of,
)
from personal_server.web.parameters import Parameters
from personal_server.web.replies import Reply
from personal_server.web.requests import Request

Item = TypeVar("Item")
_PLACE = {"connection_id": "cin_diary", "connector_key": "journal"}
_META = {"count": {"kind": "none"}, "warnings": ()}
_RECORDS = "/v1/streams/entries/records"


class SingleRecord(Record, kw_only=True):
    """One record."""

    component: ClassVar = "SingleRecord"

    at: str | None = None
    title: str | None = None
    links: SelfLink
    meta: Meta


class RecordList(ListFront[Record | Tombstone], kw_only=True):
    """A page of records, or of what changed."""

    component: ClassVar = "RecordList"
    example: ClassVar = {
        "object": "list",
        "url": _RECORDS,
        "data": [Record.example],
        "has_more": True,
        "next_cursor": "c2VhbGVk",
        "links": {
            "self": f"{_RECORDS}?limit=1",
            "next": f"{_RECORDS}?limit=1&cursor=c2VhbGVk",
        },
        "meta": {"count": {"kind": "exact", "value": 45}, "warnings": []},
    }

    next_changes_since: Word | None = None
    links: PageLinks
    meta: Meta


class Timeline(ListOf[TimelineEntry]):
    """A page of the time line."""

    component: ClassVar = "Timeline"


class SingleFieldWindow(ShownFieldWindow, kw_only=True):
    """A stretch of one field."""

    component: ClassVar = "FieldWindow"
    example: ClassVar = {
        "object": "field_window",
        "stream": "entries",
        "record_id": "ent_41",
        **_PLACE,
        "url": f"{_RECORDS}/ent_41/field-window",
        "field": {
            "path": "body",
            "type": "string",
            "text_like": True,
            "size_chars": 9_000,
            "digest": "sha256:" + "1f" * 32,
        },
        "window": {
            "text": "walked home ",
            "start_chars": 400,
            "end_chars": 412,
            "total_chars": 9_000,
            "limit_chars": 12,
            "complete": False,
            "has_more": True,
            "next_offset_chars": 412,
            "previous_offset_chars": 388,
            "match_start_chars": None,
            "match_end_chars": None,
        },
        "links": {"self": f"{_RECORDS}/ent_41/field-window?field=body&offset_chars=400"},
        "meta": _META,
    }

    links: SelfLink
    meta: Meta


class RecordRoutes:
    """The routes that read records."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def list_records(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records`."""
        sent, zone = request.parameters, zone_of(request, self._ports.time_zone)
        feed = sent.texts.get("cursor", "").startswith(TokenUse.FEED.letter)
        if feed or "changes_since" in sent.sent:
            answer = follow(
                self._ports, snapshot_of(request), request.authority, changes_query(request, zone)
            )
        else:
            answer = read_records(
                self._ports, snapshot_of(request), request.authority, records_query(request, zone)
            )
        return record_list(request, answer)

    def read_timeline(self, request: Request) -> Reply:
        """`GET /v1/timeline`."""
        query = timeline_query(request, zone_of(request, self._ports.time_zone))
        answer = read_timeline(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(Timeline, request, answer)

    def read_record(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records/{record_key}`."""
        from personal_server.reading.single_records import read_record  # noqa: PLC0415 (this route)

        query = record_query(request, zone_of(request, self._ports.time_zone))
        answer = read_record(snapshot_of(request), request.authority, query)
        return object_reply(SingleRecord, request, answer)

    def read_field_window(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records/{record_key}/field-window`."""
        query = field_window_query(request)
        answer = read_field_window(snapshot_of(request), request.authority, query, request.raw_path)
        return object_reply(SingleFieldWindow, request, answer)


def record_list(request: Request, answer: ReadResult) -> Reply:
    """A page of records, each already JSON."""
    body = RecordList(
        url=request.raw_path,
        data=cast("list[Record | Tombstone]", answer.data),
        has_more=answer.next_cursor is not None,
        next_cursor=answer.next_cursor,
        next_changes_since=answer.next_changes_since,
        links=page_links(request, answer.next_cursor),
        meta=meta_of(
            request, count=answer.count or UNCOUNTED, warnings=answer.warnings, meta=answer.meta
        ),
    )
    return Reply(body, disclosed=answer.disclosed)


def list_reply(shape: type[ListOf[Item]], request: Request, answer: ReadResult) -> Reply:
    """A page of items, each already JSON."""
    body = page_of(
        shape,
        request,
        cast("list[Item]", answer.data),
        next_cursor=answer.next_cursor,
        count=answer.count or UNCOUNTED,
        warnings=answer.warnings,
        meta=answer.meta,
    )
    return Reply(body, disclosed=answer.disclosed, leaves_at=answer.leaves_at)


def object_reply(shape: type[WireObject], request: Request, answer: ReadResult) -> Reply:
    """An answer as a flat object."""
    part = cast("WireObject", answer.data)
    body = completed(shape, request, part, warnings=answer.warnings, meta=answer.meta)
    return Reply(body, disclosed=answer.disclosed, leaves_at=answer.leaves_at)


STREAM = "/v1/streams/{stream}"


def counting_cost(parameters: Parameters) -> int:
    """One for the read, one more for counting.  Source: docs/contract/resource-server.md 16."""
    counts = parameters.texts.get("count") not in (None, "none")
    return 1 + (counts or parameters.texts.get("window") not in (None, "none"))


def counts_nothing(parameters: Parameters) -> bool:
    """Whether a page is asked for and no more, so that an index mostly leads to its rows."""
    return counting_cost(parameters) == 1
