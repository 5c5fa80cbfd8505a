"""The route table of reads: paths, tokens, parameters, and the structs that answer.

The OpenAPI document and the unknown parameters follow from it.
"""

from __future__ import annotations

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
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.aggregate_route import AggregateRoute, SingleAggregation
from personal_server.resource_server.read_parameters import (
    AGGREGATE,
    FIELD_WINDOW,
    RECORD,
    RECORDS,
    SCHEMA,
    SEARCH,
    SEARCH_ANY,
    TIMELINE,
)
from personal_server.resource_server.reads import (
    STREAM,
    RecordList,
    RecordRoutes,
    SingleFieldWindow,
    SingleRecord,
    Timeline,
    counting_cost,
    counts_nothing,
)
from personal_server.resource_server.schema_bodies import (
    ConnectorList,
    SchemaBody,
    SingleStream,
    StreamList,
)
from personal_server.resource_server.schema_routes import SchemaRoutes
from personal_server.resource_server.search_routes import SearchResults, SearchRoutes
from personal_server.web.parameters import SELECTORS
from personal_server.web.routes import Caching, Route

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
