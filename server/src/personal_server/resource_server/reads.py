"""The read routes, declared.

Source: docs/contract/resource-server.md 6 to 11, 20.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, TypeVar, cast

from pdpp_kernel.errors import (
    AmbiguousConnection,
    AmbiguousSchemaDetail,
    ConnectionNotFound,
    CursorExpired,
    DamagedRecord,
    FieldNotFound,
    FieldNotGranted,
    FieldNotText,
    GrantStreamNotAllowed,
    InvalidCursor,
    InvalidExpand,
    InvalidFieldPath,
    InvalidFilter,
    InvalidSort,
    InvalidWindow,
    NotFound,
    QueryNotFound,
    UnknownField,
    UnsupportedSearchMode,
)
from pdpp_kernel.wire_objects import WireObject, Word
from personal_server.domain.cursor import TokenUse
from personal_server.domain.envelope import UNCOUNTED, ReadResult
from personal_server.enforcement.disclose import Record, Tombstone
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.enforcement.search_hits import SearchResult
from personal_server.enforcement.timeline_entries import TimelineEntry
from personal_server.reading.aggregates import ShownAggregation, read_aggregate
from personal_server.reading.changes import follow
from personal_server.reading.field_windows import ShownFieldWindow, read_field_window
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_record, read_records
from personal_server.reading.search import search
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
from personal_server.resource_server.read_parameters import (
    AGGREGATE,
    FIELD_WINDOW,
    RECORD,
    RECORDS,
    SCHEMA,
    SEARCH,
    SEARCH_ANY,
    TIMELINE,
    aggregate_query,
    changes_query,
    field_window_query,
    record_query,
    records_query,
    search_query,
    snapshot_of,
    timeline_query,
)
from personal_server.resource_server.schema import (
    ConnectorList,
    SchemaBody,
    SchemaRoutes,
    SingleStream,
    StreamList,
)
from personal_server.web.parameters import SELECTORS, Parameters
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Caching, Route

# Record routes: lists, single records, field windows.
#
# Source: docs/contract/resource-server.md 7, 8, 9.


Item = TypeVar("Item")
_PLACE = {"connection_id": "cin_diary", "connector_key": "journal"}
_META = {"count": {"kind": "none"}, "warnings": ()}
_RECORDS = "/v1/streams/entries/records"


class SingleRecord(Record, kw_only=True):
    """One record."""

    component: ClassVar = "SingleRecord"

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
        sent = request.parameters
        feed = sent.texts.get("cursor", "").startswith(TokenUse.FEED.letter)
        if feed or "changes_since" in sent.sent:
            answer = follow(
                self._ports, snapshot_of(request), request.authority, changes_query(request)
            )
        else:
            answer = read_records(
                self._ports, snapshot_of(request), request.authority, records_query(request)
            )
        return record_list(request, answer)

    def read_timeline(self, request: Request) -> Reply:
        """`GET /v1/timeline`."""
        query = timeline_query(request)
        answer = read_timeline(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(Timeline, request, answer)

    def read_record(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records/{record_key}`."""
        query = record_query(request)
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


# The aggregate route.  Source: docs/contract/resource-server.md 10.


class SingleAggregation(ShownAggregation, kw_only=True):
    """One aggregate."""

    component: ClassVar = "Aggregation"
    example: ClassVar = {
        "object": "aggregation",
        "stream": "entries",
        "metric": "sum",
        "field": "word_count",
        "group_by": None,
        "group_by_time": "created_at",
        "granularity": "month",
        "time_zone": "Europe/Rome",
        "approximate": False,
        "filtered_record_count": 45,
        "group_count": 2,
        "groups": [
            {
                "key": "2026-03-01",
                "start": "2026-03-01T00:00:00+01:00",
                "count": 45,
                "value": 1_200,
            }
        ],
        "limit": 1,
        "other_count": 0,
        "other_value": 0,
        "links": {"self": "/v1/streams/entries/aggregate?metric=sum&field=word_count"},
        "meta": _META,
    }

    links: SelfLink
    meta: Meta


class AggregateRoute:
    """`GET /v1/streams/{stream}/aggregate`."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def read(self, request: Request) -> Reply:
        """One aggregate."""
        query = aggregate_query(request)
        answer = read_aggregate(self._ports, snapshot_of(request), request.authority, query)
        return object_reply(SingleAggregation, request, answer)


# Search routes.  Source: docs/contract/resource-server.md 11.


class SearchResults(ListOf[SearchResult]):
    """A page of matching records."""

    component: ClassVar = "SearchResults"


class SearchRoutes:
    """The three modes."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def search(self, request: Request) -> Reply:
        """`GET /v1/search`."""
        return self._answer(request, search_query(request))

    def search_meaning(self, request: Request) -> Reply:
        """`GET /v1/search/semantic`."""
        return self._answer(request, replace(search_query(request), mode=SearchMode.MEANING))

    def search_both(self, request: Request) -> Reply:
        """`GET /v1/search/hybrid`."""
        return self._answer(request, replace(search_query(request), mode=SearchMode.HYBRID))

    def _answer(self, request: Request, query: SearchQuery) -> Reply:
        answer = search(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(SearchResults, request, answer)


STREAM = "/v1/streams/{stream}"
RECORD_KEY = STREAM + "/records/{record_key}"

_SELECTION = (ConnectionNotFound, AmbiguousConnection)
_STREAM_SELECTION = (*_SELECTION, GrantStreamNotAllowed, NotFound)
_FIELDS = (UnknownField, FieldNotGranted)


def read_routes(ports: ReadPorts) -> tuple[Route, ...]:
    """Every route that reads."""
    return (
        *_schema_routes(SchemaRoutes(ports)),
        *_record_routes(ports),
        *_search_routes(SearchRoutes(ports)),
    )


def counting_cost(parameters: Parameters) -> int:
    """One for the read, one more for counting.  Source: docs/contract/resource-server.md 16."""
    counts = parameters.texts.get("count") not in (None, "none")
    return 1 + (counts or parameters.texts.get("window") not in (None, "none"))


def counts_nothing(parameters: Parameters) -> bool:
    """Whether a page is asked for and no more, so that an index mostly leads to its rows."""
    return counting_cost(parameters) == 1


def _schema_routes(routes: SchemaRoutes) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/v1/connectors",
            routes.list_connectors,
            "The sources that the token can read, with their streams.",
            "6.1",
            parameters=SELECTORS,
            answer=ConnectorList,
            errors=_SELECTION,
            cors=True,
        ),
        Route(
            "GET",
            "/v1/schema",
            routes.read_schema,
            "What the token can read, and how.",
            "6.2",
            parameters=SCHEMA,
            answer=SchemaBody,
            errors=(ConnectionNotFound, AmbiguousSchemaDetail),
            cors=True,
            caching=Caching.REVALIDATE,
            etag=True,
        ),
        Route(
            "GET",
            "/v1/streams",
            routes.list_streams,
            "Streams by connection, with their number of records.",
            "6.5",
            parameters=SELECTORS,
            answer=StreamList,
            errors=_SELECTION,
            cors=True,
        ),
        Route(
            "GET",
            STREAM,
            routes.read_stream,
            "One stream's description.",
            "6.5",
            parameters=SELECTORS,
            answer=SingleStream,
            errors=_STREAM_SELECTION,
            cors=True,
            caching=Caching.REVALIDATE,
            etag=True,
        ),
    )


def _record_routes(ports: ReadPorts) -> tuple[Route, ...]:
    routes = RecordRoutes(ports)
    return (
        Route(
            "GET",
            STREAM + "/records",
            routes.list_records,
            "Records of a stream, or what changed since a bookmark.",
            "7",
            parameters=RECORDS,
            cost=counting_cost,
            is_brief=counts_nothing,
            answer=RecordList,
            errors=(
                *_STREAM_SELECTION,
                *_FIELDS,
                InvalidSort,
                InvalidFilter,
                InvalidExpand,
                InvalidCursor,
                CursorExpired,
            ),
            cors=True,
        ),
        Route(
            "GET",
            "/v1/timeline",
            routes.read_timeline,
            "Records of all streams in the order of time.",
            "7.9",
            parameters=TIMELINE,
            cost=lambda _: 3,
            answer=Timeline,
            errors=(*_SELECTION, GrantStreamNotAllowed, NotFound, InvalidCursor),
            cors=True,
        ),
        Route(
            "GET",
            RECORD_KEY,
            routes.read_record,
            "One record.",
            "9.1",
            parameters=RECORD,
            is_brief=lambda _: True,
            answer=SingleRecord,
            errors=(*_STREAM_SELECTION, *_FIELDS, InvalidExpand, DamagedRecord),
            cors=True,
        ),
        Route(
            "GET",
            RECORD_KEY + "/field-window",
            routes.read_field_window,
            "A stretch of one long text field.",
            "9.2",
            parameters=FIELD_WINDOW,
            is_brief=lambda _: True,
            answer=SingleFieldWindow,
            errors=(
                *_STREAM_SELECTION,
                *_FIELDS,
                InvalidFieldPath,
                InvalidWindow,
                FieldNotFound,
                FieldNotText,
                QueryNotFound,
                DamagedRecord,
            ),
            cors=True,
        ),
        Route(
            "GET",
            STREAM + "/aggregate",
            AggregateRoute(ports).read,
            "A metric over a stream, perhaps grouped.",
            "10",
            parameters=AGGREGATE,
            cost=lambda _: 3,
            answer=SingleAggregation,
            errors=(*_STREAM_SELECTION, *_FIELDS, InvalidFilter),
            cors=True,
        ),
    )


def _search_routes(routes: SearchRoutes) -> tuple[Route, ...]:
    errors = (
        *_SELECTION,
        *_FIELDS,
        GrantStreamNotAllowed,
        NotFound,
        InvalidFilter,
        InvalidCursor,
        CursorExpired,
        UnsupportedSearchMode,
    )
    modes = (
        ("", routes.search, "Records that hold all the words, best first.", "11"),
        ("/semantic", routes.search_meaning, "The records nearest in meaning.", "11.6"),
        ("/hybrid", routes.search_both, "Records found by words and by meaning.", "11.6"),
    )
    return tuple(
        Route(
            "GET",
            f"/v1/search{path}",
            answer,
            text,
            section,
            parameters=SEARCH if path else SEARCH_ANY,
            cost=lambda _: 3,
            answer=SearchResults,
            errors=errors,
            cors=True,
        )
        for path, answer, text, section in modes
    )
