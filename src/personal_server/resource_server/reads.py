"""The read routes, declared.

Source: docs/contract/resource-server.md 6 to 11, 20.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from personal_server.domain.envelope import Answer
from personal_server.enforcement.queries import (
    DEFAULT_GROUPS,
    DEFAULT_LIMIT,
    AggregateQuery,
    ChangesQuery,
    FieldWindowQuery,
    RecordQuery,
    RecordsQuery,
    SearchQuery,
)
from personal_server.errors import (
    AmbiguousConnection,
    AmbiguousSchemaDetail,
    ConnectionNotFound,
    CursorExpired,
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
from personal_server.reading.aggregates import read_aggregate
from personal_server.reading.changes import follow, is_feed_cursor
from personal_server.reading.field_windows import read_field_window
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_record, read_records
from personal_server.reading.search import search
from personal_server.resource_server.envelopes import NO_COUNT, list_body, object_body
from personal_server.resource_server.read_parameters import (
    AGGREGATE,
    FIELD_WINDOW,
    RECORD,
    RECORDS,
    SCHEMA,
    SEARCH,
    cut_of,
    expand_of,
    filters_of,
    refuse_beside_changes,
    selectors_of,
    snapshot_of,
)
from personal_server.resource_server.schema import SchemaRoutes
from personal_server.web.parameters import SELECTORS, Parameters
from personal_server.web.requests import Request
from personal_server.web.responses import Reply
from personal_server.web.routing import Caching, Route

# Record routes: lists, single records, field windows.
#
# Source: docs/contract/resource-server.md 7, 8, 9.


class RecordRoutes:
    """The routes that read records."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def list_records(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records`."""
        sent = request.parameters
        feed = is_feed_cursor(self._ports.sealer, sent.text("cursor"))
        if feed or "changes_since" in sent.sent:
            return self._follow(request)
        query = RecordsQuery(
            stream=request.path["stream"],
            selectors=selectors_of(sent),
            limit=sent.integer("limit") or DEFAULT_LIMIT,
            cursor=sent.text("cursor"),
            order=sent.text("order"),
            sort=sent.text("sort"),
            filters=filters_of(sent),
            cut=cut_of(sent),
            expand=expand_of(sent),
            count=sent.text("count") != "none",
            window=sent.text("window") != "none",
        )
        answer = read_records(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(request, answer)

    def _follow(self, request: Request) -> Reply:
        sent = request.parameters
        refuse_beside_changes(sent)
        query = ChangesQuery(
            stream=request.path["stream"],
            selectors=selectors_of(sent),
            limit=sent.integer("limit") or DEFAULT_LIMIT,
            cursor=sent.text("cursor"),
            changes_since=sent.text("changes_since"),
            cut=cut_of(sent),
        )
        answer = follow(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(request, answer)

    def read_record(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records/{record_key}`."""
        sent = request.parameters
        query = RecordQuery(
            stream=request.path["stream"],
            key=request.path["record_key"],
            selectors=selectors_of(sent),
            cut=cut_of(sent),
            expand=expand_of(sent),
        )
        answer = read_record(snapshot_of(request), request.authority, query)
        return object_reply(request, answer)

    def read_field_window(self, request: Request) -> Reply:
        """`GET /v1/streams/{stream}/records/{record_key}/field-window`."""
        sent = request.parameters
        query = FieldWindowQuery(
            stream=request.path["stream"],
            key=request.path["record_key"],
            field=sent.text("field") or "",
            selectors=selectors_of(sent),
            offset_chars=sent.integer("offset_chars"),
            limit_chars=sent.integer("limit_chars"),
            text=sent.text("q"),
            before_chars=sent.integer("before_chars"),
            after_chars=sent.integer("after_chars"),
        )
        answer = read_field_window(snapshot_of(request), request.authority, query, request.raw_path)
        return object_reply(request, answer)


def list_reply(request: Request, answer: Answer) -> Reply:
    """An answer in the list envelope."""
    body = list_body(
        request,
        cast("list[object]", answer.data),
        next_cursor=answer.next_cursor,
        next_changes_since=answer.next_changes_since,
        count=answer.count or NO_COUNT,
        warnings=[warning.render() for warning in answer.warnings],
        meta=answer.meta,
    )
    return Reply(body, disclosed=answer.disclosed)


def object_reply(request: Request, answer: Answer) -> Reply:
    """An answer as a flat object."""
    body = object_body(
        request,
        cast("Mapping[str, object]", answer.data),
        warnings=[warning.render() for warning in answer.warnings],
        meta=answer.meta,
    )
    return Reply(body, disclosed=answer.disclosed)


# The aggregate route.  Source: docs/contract/resource-server.md 10.


class AggregateRoute:
    """`GET /v1/streams/{stream}/aggregate`."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def read(self, request: Request) -> Reply:
        """One aggregate."""
        sent = request.parameters
        query = AggregateQuery(
            stream=request.path["stream"],
            metric=sent.text("metric") or "",
            selectors=selectors_of(sent),
            field=sent.text("field"),
            group_by=sent.text("group_by"),
            group_by_time=sent.text("group_by_time"),
            granularity=sent.text("granularity"),
            time_zone=sent.text("time_zone"),
            limit=sent.integer("limit") or DEFAULT_GROUPS,
            filters=filters_of(sent),
        )
        answer = read_aggregate(self._ports, snapshot_of(request), request.authority, query)
        return object_reply(request, answer)


# Search routes.  Source: docs/contract/resource-server.md 11.


class SearchRoutes:
    """The three modes; one is installed."""

    def __init__(self, ports: ReadPorts) -> None:
        self._ports = ports

    def search(self, request: Request) -> Reply:
        """`GET /v1/search`."""
        sent = request.parameters
        query = SearchQuery(
            text=sent.text("q") or "",
            selectors=selectors_of(sent),
            streams=sent.names("streams"),
            limit=sent.integer("limit") or DEFAULT_LIMIT,
            cursor=sent.text("cursor"),
            filters=filters_of(sent),
        )
        answer = search(self._ports, snapshot_of(request), request.authority, query)
        return list_reply(request, answer)

    def refuse(self, request: Request) -> Reply:
        """`GET /v1/search/semantic` and `/v1/search/hybrid`."""
        del request
        raise UnsupportedSearchMode(
            "This server searches words; use /v1/search.",
            param="mode",
            allowed_values=["lexical"],
        )


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
    counts = parameters.text("count") not in (None, "none")
    return 1 + (counts or parameters.text("window") not in (None, "none"))


def _schema_routes(routes: SchemaRoutes) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/v1/connectors",
            routes.list_connectors,
            "The sources that the token can read, with their streams.",
            "6.1",
            parameters=SELECTORS,
            answer="ConnectorList",
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
            answer="Schema",
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
            answer="StreamList",
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
            answer="SingleStream",
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
            answer="RecordList",
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
            RECORD_KEY,
            routes.read_record,
            "One record.",
            "9.1",
            parameters=RECORD,
            answer="SingleRecord",
            errors=(*_STREAM_SELECTION, *_FIELDS, InvalidExpand),
            cors=True,
        ),
        Route(
            "GET",
            RECORD_KEY + "/field-window",
            routes.read_field_window,
            "A stretch of one long text field.",
            "9.2",
            parameters=FIELD_WINDOW,
            answer="FieldWindow",
            errors=(
                *_STREAM_SELECTION,
                *_FIELDS,
                InvalidFieldPath,
                InvalidWindow,
                FieldNotFound,
                FieldNotText,
                QueryNotFound,
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
            answer="Aggregation",
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
    lexical = Route(
        "GET",
        "/v1/search",
        routes.search,
        "Records that hold all the words, best first.",
        "11",
        parameters=SEARCH,
        cost=lambda _: 3,
        answer="SearchResults",
        errors=errors,
        cors=True,
    )
    absent = (
        Route(
            "GET",
            f"/v1/search/{mode}",
            routes.refuse,
            f"The {mode} mode is not installed on this server.",
            "11.6",
            parameters=SEARCH,
            cost=lambda _: 5,
            answer="SearchResults",
            errors=errors,
            cors=True,
        )
        for mode in ("semantic", "hybrid")
    )
    return (lexical, *absent)
