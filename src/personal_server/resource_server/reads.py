"""The read routes, declared.

Source: RS contract 6 to 11, 20.
"""

from __future__ import annotations

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
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.aggregates import AggregateRoute
from personal_server.resource_server.read_parameters import (
    AGGREGATE,
    FIELD_WINDOW,
    RECORD,
    RECORDS,
    SCHEMA,
    SEARCH,
)
from personal_server.resource_server.records import RecordRoutes
from personal_server.resource_server.schema import SchemaRoutes
from personal_server.resource_server.search import SearchRoutes
from personal_server.web.parameters import SELECTORS, Parameters
from personal_server.web.routing import Caching, Route

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
    """One for the read, one more for counting.  Source: RS contract 16."""
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
