"""The OpenAPI 3.1 description of `/v1`, read from the route table.

Rule: nothing is written here about a route that its declaration does not say; the document and the
routes cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from pdpp_kernel.errors import (
    AuthenticationRequired,
    BodyTooLarge,
    GrantExpired,
    GrantInvalid,
    GrantPaused,
    GrantRevoked,
    InternalError,
    InvalidRequest,
    InvalidToken,
    MethodNotAllowed,
    MisdirectedRequest,
    NotFound,
    NotPermitted,
    PersonalServerError,
    QueryTimeout,
    QueryTooLong,
    QuotaExceeded,
    RateLimitExceeded,
    StorageReadOnly,
    StorageUnavailable,
    UnsupportedMediaType,
    UnsupportedVersion,
)
from pdpp_kernel.status_phrases import status_phrase
from pdpp_kernel.wire_objects import (
    Address,
    AnyObject,
    Count,
    Instant,
    WireObject,
    Word,
)
from personal_server.domain.envelope import (
    MAX_NAMED_CONNECTIONS,
    AvailableConnection,
    UnavailableConnections,
)
from personal_server.web.json_schemas import Components, JsonSchema, component_name, reference
from personal_server.web.parameters import Form, Kind, Parameter
from personal_server.web.requests import PDPP_VERSION
from personal_server.web.routes import Route, Tokens
from personal_server.web.routing import RouteTable

ErrorClass = type[PersonalServerError]

TAGS: Mapping[str, str] = {
    "5": "Discovery",
    "6": "Schema",
    "7": "Records",
    "8": "Records",
    "9": "Records",
    "10": "Aggregates",
    "11": "Search",
    "12": "Blobs",
    "13": "Writes",
    "14": "Owner",
    "15": "Events",
}
OPERATION_IDS: Mapping[str, str] = {
    "GET /": "showFrontPage",
    "GET /v1": "listEntryPoints",
    "GET /docs": "showDocumentation",
    "GET /.well-known/oauth-protected-resource": "describeProtectedResource",
    "GET /.well-known/oauth-protected-resource/mcp": "describeProtectedMcpResource",
    "GET /v1/openapi.json": "describeApi",
    "GET /v1/connectors": "listConnectors",
    "GET /v1/schema": "readSchema",
    "GET /v1/streams": "listStreams",
    "GET /v1/streams/{stream}": "readStream",
    "GET /v1/streams/{stream}/records": "listRecords",
    "GET /v1/streams/{stream}/records/{record_key}": "readRecord",
    "GET /v1/streams/{stream}/records/{record_key}/field-window": "readFieldWindow",
    "GET /v1/streams/{stream}/aggregate": "aggregateRecords",
    "GET /v1/timeline": "readTimeline",
    "GET /v1/search": "searchRecords",
    "GET /v1/search/semantic": "searchRecordsByMeaning",
    "GET /v1/search/hybrid": "searchRecordsByWordsAndMeaning",
    "GET /v1/blobs/{blob_id}": "readBlob",
    "POST /v1/blobs": "storeBlob",
    "POST /v1/ingest/{stream}": "ingestRecords",
    "GET /v1/state/{connector_key}": "readCollectorState",
    "PUT /v1/state/{connector_key}": "replaceCollectorState",
    "GET /v1/rejections": "listOwnRejections",
    "DELETE /v1/streams/{stream}/records": "deleteRecords",
    "DELETE /v1/streams/{stream}/records/{record_key}": "deleteRecord",
    "GET /v1/owner/declarations": "listDeclarations",
    "POST /v1/owner/declarations": "registerDeclaration",
    "GET /v1/owner/declarations/{connector_key}": "readDeclaration",
    "DELETE /v1/owner/declarations/{connector_key}": "deleteDeclaration",
    "GET /v1/owner/connections": "listConnections",
    "POST /v1/owner/connections": "createConnection",
    "GET /v1/owner/connections/{id}": "readConnection",
    "PATCH /v1/owner/connections/{id}": "changeConnection",
    "DELETE /v1/owner/connections/{id}": "deleteConnection",
    "POST /v1/owner/connections/{id}/pause": "pauseConnection",
    "POST /v1/owner/connections/{id}/resume": "resumeConnection",
    "POST /v1/owner/connections/{id}/revoke": "revokeConnection",
    "POST /v1/owner/connections/{id}/reactivate": "reactivateConnection",
    "POST /v1/owner/connections/{id}/runs": "reportRun",
    "GET /v1/owner/connections/{id}/rejections": "listRejections",
    "GET /v1/owner/disclosures": "listDisclosures",
    "GET /v1/owner/export": "exportRecords",
    "GET /v1/feeds": "listFeeds",
    "POST /v1/feeds/{id}/run": "runFeed",
    "POST /v1/event-subscriptions": "createEventSubscription",
    "GET /v1/event-subscriptions": "listEventSubscriptions",
    "GET /v1/event-subscriptions/{id}": "readEventSubscription",
    "PATCH /v1/event-subscriptions/{id}": "changeEventSubscription",
    "DELETE /v1/event-subscriptions/{id}": "deleteEventSubscription",
    "POST /v1/event-subscriptions/{id}/test-event": "sendTestEvent",
}
TOKEN_WORDS: Mapping[Tokens, str] = {
    Tokens.NONE: "none",
    Tokens.ANY: "client, mcp_package or owner",
    Tokens.OWNER: "owner",
    Tokens.COLLECTOR: "owner or collector",
}
_TOKEN_ERRORS: tuple[ErrorClass, ...] = (
    AuthenticationRequired,
    InvalidToken,
    MethodNotAllowed,
    MisdirectedRequest,
    NotFound,
    GrantRevoked,
    GrantExpired,
    GrantPaused,
    GrantInvalid,
    RateLimitExceeded,
    QuotaExceeded,
)


class ShownFault(WireObject):
    """One of the faults of a document that was sent."""

    path: str
    message: str


class ErrorDetails(WireObject, kw_only=True):
    """What an error says of itself; `code` is one of those that the routes can answer with."""

    type: Literal[
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "conflict_error",
        "gone_error",
        "request_entity_too_large_error",
        "unprocessable_error",
        "rate_limit_error",
        "api_error",
    ]
    code: str
    message: Word
    param: str | None = None
    allowed_values: Sequence[Any] | None = None
    suggestions: Annotated[Sequence[str], msgspec.Meta(max_length=5)] | None = None
    retry_with: str | None = None
    recovery: AnyObject | None = None
    retry_after_seconds: Count | None = None
    remaining: Count | None = None
    resets_at: Instant | None = None
    limit: (
        (
            Literal[
                "requests", "concurrency", "records", "bytes", "auth", "challenges", "test_events"
            ]
        )
        | None
    ) = None
    errors: Annotated[Sequence[ShownFault], msgspec.Meta(max_length=100)] | None = None
    available_connections: (
        Annotated[
            Sequence[AvailableConnection],
            msgspec.Meta(min_length=2, max_length=MAX_NAMED_CONNECTIONS),
        ]
        | None
    ) = None
    available_connection_count: Count | None = None
    available_connections_truncated: bool | None = None
    available_connections_omitted: Count | None = None
    discovery_hint: str | None = None
    unavailable_connections: UnavailableConnections | None = None
    unavailable_connection_count: Count | None = None
    resource_metadata: Address | None = None
    next_step: str | None = None
    request_id: Word


class ErrorAnswer(WireObject):
    """The error envelope.  Source: docs/contract/resource-server.md 2.1."""

    component: ClassVar = "Error"
    example: ClassVar = {
        "error": {
            "type": "permission_error",
            "code": "field_not_granted",
            "message": "Field 'salary' is not part of this grant.",
            "param": "fields",
            "request_id": "req_5b1c0d9e7a3f4c2b8d6e1f00",
        }
    }

    error: ErrorDetails


CODE = "ErrorCode"


class Beside(msgspec.Struct, frozen=True):
    """What another part of the same server answers, in the words of the document."""

    tags: tuple[str, ...] = ()
    paths: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    schemas: Mapping[str, JsonSchema] = msgspec.field(default_factory=dict[str, JsonSchema])
    security_schemes: Mapping[str, JsonSchema] = msgspec.field(
        default_factory=dict[str, JsonSchema]
    )


def title(server_name: str) -> str:
    """What the description of a server is headed."""
    return f"{server_name}: PDPP resource server"


def openapi_document(
    table: RouteTable[Route], server_name: str, beside: Beside | None = None
) -> dict[str, object]:
    """The whole document, of all routes that are advertised and what lies beside them."""
    beside = beside or Beside()
    routes = [route for route in table.routes if route.advertised]
    tags = dict.fromkeys([*(_tag(route) for route in routes), *beside.tags])
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": title(server_name),
            "version": PDPP_VERSION,
            "description": "One person's records, and bounded read-only slices of them.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}],
        "tags": [{"name": name} for name in tags],
        "paths": {**_paths(routes), **beside.paths},
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                **beside.security_schemes,
            },
            "schemas": {**_schemas(routes), **beside.schemas},
        },
    }


def _schemas(routes: Sequence[Route]) -> dict[str, JsonSchema]:
    components = Components()
    components.describe(ErrorAnswer)
    for route in routes:
        for answer in filter(None, (route.answer, *route.also.values())):
            components.describe(answer)
    codes = sorted({error.code for error in error_classes(routes)})
    components.schemas[CODE] = {"enum": codes}
    components.schemas[ErrorDetails.__name__]["properties"]["code"] = reference(CODE)
    return components.schemas


def error_classes(routes: Iterable[Route]) -> tuple[ErrorClass, ...]:
    """Every class that some call of the server can be answered with."""
    raised = [error for route in routes for error in errors_of(route)]
    return tuple(dict.fromkeys([*raised, NotFound, MethodNotAllowed, MisdirectedRequest]))


def errors_of(route: Route) -> tuple[ErrorClass, ...]:
    """The classes a route can answer with: those of its kind, and its own."""
    found: list[ErrorClass] = [
        InvalidRequest,
        UnsupportedVersion,
        QueryTooLong,
        InternalError,
        StorageUnavailable,
        StorageReadOnly,
    ]
    if route.tokens is not Tokens.NONE:
        found.extend(_TOKEN_ERRORS)
    if route.tokens in (Tokens.OWNER, Tokens.COLLECTOR):
        found.append(NotPermitted)
    if route.body is not None:
        found.extend((BodyTooLarge, UnsupportedMediaType))
    if route.tokens is not Tokens.NONE and route.has_deadline:
        found.append(QueryTimeout)
    found.extend(parameter.error for parameter in route.parameters)
    return tuple(dict.fromkeys((*found, *route.errors)))


def _paths(routes: Iterable[Route]) -> dict[str, object]:
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.pattern, {})[route.method.lower()] = _operation(route)
    return dict(paths)


def _operation(route: Route) -> dict[str, object]:
    operation: dict[str, object] = {
        "operationId": OPERATION_IDS[route.name],
        "summary": route.summary,
        "tags": [_tag(route)],
        "x-pdpp-tokens": TOKEN_WORDS[route.tokens],
        "parameters": [
            *_path_parameters(route.pattern),
            *[_query_parameter(parameter) for parameter in route.parameters],
        ],
        "responses": {
            **{str(status): r for status, r in _successes(route)},
            **{str(status): r for status, r in _failures(route)},
        },
    }
    if route.tokens is Tokens.NONE:
        operation["security"] = []
    if route.body is not None:
        operation["requestBody"] = _request_body(route)
    return operation


def _tag(route: Route) -> str:
    return TAGS[route.section.partition(".")[0]]


def _path_parameters(pattern: str) -> Iterator[dict[str, object]]:
    for segment in pattern.split("/"):
        if segment.startswith("{"):
            yield {
                "name": segment[1:-1],
                "in": "path",
                "required": True,
                "schema": {"type": "string", "minLength": 1, "maxLength": 4_096},
            }


def _query_parameter(parameter: Parameter) -> dict[str, object]:
    described: dict[str, object] = {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.description,
        "schema": _parameter_schema(parameter),
    }
    if parameter.form is not Form.SCALAR:
        described |= {"style": "form", "explode": True}
    if parameter.alias_of is not None:
        described["deprecated"] = True
    if parameter.example is not None:
        described["example"] = _example(parameter, parameter.example)
    return described


def _example(parameter: Parameter, written: str) -> object:
    if parameter.form is not Form.KEYED:
        return written
    name, _, value = written.partition("=")
    return {name: int(value) if parameter.kind is Kind.INTEGER else value}


def _parameter_schema(parameter: Parameter) -> JsonSchema:
    if parameter.form is Form.LIST:
        items: dict[str, object] = {"type": "string", "minLength": 1, "pattern": "^[^,]+$"}
        return _sized({"type": "array", "items": items}, parameter.max_items, "maxItems")
    if parameter.form is Form.KEYED:
        kind = "integer" if parameter.kind is Kind.INTEGER else "string"
        values = _with_bounds({"type": kind}, parameter)
        names = {"type": "string", "pattern": _bracketed(parameter)}
        whole: dict[str, object] = {"type": "object", "propertyNames": names}
        whole["additionalProperties"] = values
        return _sized(whole, parameter.max_items, "maxProperties")
    return _with_bounds(_scalar_schema(parameter), parameter)


def _bracketed(parameter: Parameter) -> str:
    """The names a keyed parameter is sent with, brackets and all.

    OpenAPI leaves deep objects of a second level undefined, which `filter[field][gte]` needs; a
    spread object whose members are the names as sent is defined, and generators agree on it.
    """
    key = r"\[[^\[\]]+\]"
    return f"^{parameter.name}{key}{f'({key})?' * (parameter.depth - 1)}$"


def _scalar_schema(parameter: Parameter) -> dict[str, object]:
    match parameter.kind:
        case Kind.INTEGER:
            return {"type": "integer"}
        case Kind.BOOLEAN:
            return {"type": "boolean"}
        case Kind.INSTANT:
            return {"type": "string", "format": "date-time"}
        case Kind.TEXT:
            return {"type": "string"}


def _with_bounds(schema: dict[str, object], parameter: Parameter) -> dict[str, object]:
    filled = parameter.form is Form.SCALAR and schema["type"] == "string"
    bounds: dict[str, object | None] = {
        "minLength": 1 if filled and not parameter.empty_is_absent else None,
        "enum": list(parameter.choices) or None,
        "default": parameter.default,
        "minimum": parameter.minimum,
        "maximum": None if parameter.clamps else parameter.maximum,
        "maxLength": parameter.max_chars,
    }
    return {**schema, **{name: value for name, value in bounds.items() if value is not None}}


def _sized(schema: dict[str, object], size: int | None, word: str) -> dict[str, object]:
    return schema if size is None else {**schema, word: size}


def _request_body(route: Route) -> dict[str, object]:
    rule = route.body
    if rule is None:
        return {}
    media: dict[str, object] = {"schema": rule.schema}
    if rule.example is not None:
        media["example"] = rule.example
    types = rule.media_types or ("application/octet-stream",)
    return {"required": True, "content": dict.fromkeys(types, media)}


def _successes(route: Route) -> Iterator[tuple[int, dict[str, object]]]:
    for status, shape in {route.success: route.answer, **route.also}.items():
        if status < 400:
            yield status, _answer(status, shape, route.media_types)
    if route.etag:
        yield 304, {"description": "Not modified"}


def _answer(
    status: int, shape: type[msgspec.Struct] | None, media_types: tuple[str, ...]
) -> dict[str, object]:
    described: dict[str, object] = {"description": status_phrase(status)}
    content: dict[str, object] = {} if status == 204 else {name: {} for name in media_types}
    if shape is not None:
        content["application/json"] = {"schema": reference(component_name(shape) or shape.__name__)}
    return {**described, "content": content} if content else described


def _failures(route: Route) -> Iterator[tuple[int, dict[str, object]]]:
    codes: dict[int, list[str]] = {}
    for error in errors_of(route):
        codes.setdefault(error.status, []).append(error.code)
    for status in sorted(codes):
        known = sorted(set(codes[status]))
        narrowed = {"properties": {"error": {"properties": {"code": {"enum": known}}}}}
        schema = {"allOf": [reference("Error"), narrowed]}
        content = {"application/json": {"schema": schema}}
        yield status, {"description": ", ".join(known), "content": content}
