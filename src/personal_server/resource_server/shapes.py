"""Shapes: the words in which answers are described, and what all answers share.

Rule: objects are closed; a member that is not described here may not be sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from personal_server.domain import declaration_document
from personal_server.domain.declaration import RANGE_OPERATORS, Cardinality, Semantics
from personal_server.errors import TYPE_OF_STATUS

Shape = Mapping[str, object]

TEXT: Shape = {"type": "string"}
WORD: Shape = {"type": "string", "minLength": 1}
COUNT: Shape = {"type": "integer", "minimum": 0}
FLAG: Shape = {"type": "boolean"}
ANYTHING: Shape = {}
MAP: Shape = {"type": "object", "additionalProperties": True}
INSTANT: Shape = {"type": "string", "format": "date-time"}
PATH: Shape = {"type": "string", "pattern": "^/v1/"}
CONNECTION_ID: Shape = {"type": "string", "pattern": "^cin_[A-Za-z0-9_-]{1,40}$"}


def ref(name: str) -> Shape:
    """A reference to a component."""
    return {"$ref": f"#/components/schemas/{name}"}


def constant(value: object) -> Shape:
    """Exactly this value; client generators stumble over a truth value as `const`."""
    return {"type": "boolean", "enum": [value]} if isinstance(value, bool) else {"const": value}


def one_of(*values: object) -> Shape:
    """A closed enumeration."""
    return {"enum": list(values)}


def nullable(shape: Shape) -> Shape:
    """The shape, or `null`."""
    return {"anyOf": [shape, {"type": "null"}]}


def either(*shapes: Shape) -> Shape:
    """Any of these shapes."""
    return {"anyOf": list(shapes)}


def array(items: Shape, **more: object) -> Shape:
    """A list of items."""
    return {"type": "array", "items": items, **more}


def map_of(values: Shape) -> Shape:
    """An object whose members all have one shape."""
    return {"type": "object", "additionalProperties": values}


def closed(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """An object with exactly these members."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


SOURCE = closed({"kind": one_of("connector", "provider_native"), "id": WORD})
IDENTITY: Mapping[str, Shape] = {"connection_id": CONNECTION_ID, "connector_key": WORD}
LABELS: Mapping[str, Shape] = {"display_name": TEXT, "grant_id": TEXT}
UNAVAILABLE: Mapping[str, Shape] = {
    "unavailable_connections": array(ref("UnavailableConnection"), maxItems=12),
    "unavailable_connection_count": COUNT,
}


def list_of(item: Shape, **optional: Shape) -> Shape:
    """The list envelope around items.  Source: docs/contract/resource-server.md 2.2."""
    return closed(
        {
            "object": constant("list"),
            "url": PATH,
            "data": array(item),
            "has_more": FLAG,
            "links": closed({"self": PATH, "next": nullable(PATH)}),
            "meta": ref("Meta"),
        },
        {"next_cursor": WORD, **optional},
    )


def single(
    name: str, required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None
) -> Shape:
    """A flat single object with `links` and `meta`."""
    return closed(
        {
            "object": constant(name),
            **required,
            "links": closed({"self": PATH}),
            "meta": ref("Meta"),
        },
        optional,
    )


def error_shape(codes: Sequence[str]) -> Shape:
    """The error envelope.  Source: docs/contract/resource-server.md 2.1."""
    error = closed(
        {
            "type": one_of(*dict.fromkeys(TYPE_OF_STATUS.values())),
            "code": one_of(*codes),
            "message": WORD,
            "request_id": WORD,
        },
        {
            "param": TEXT,
            "allowed_values": array(ANYTHING),
            "suggestions": array(TEXT, maxItems=5),
            "retry_with": TEXT,
            "recovery": MAP,
            "retry_after_seconds": COUNT,
            "limit": one_of("requests", "concurrency", "records", "bytes", "auth"),
            "errors": array(closed({"path": TEXT, "message": TEXT}), maxItems=100),
            "available_connections": array(ref("AvailableConnection"), minItems=2, maxItems=12),
            "available_connection_count": COUNT,
            "available_connections_truncated": FLAG,
            "available_connections_omitted": COUNT,
            "discovery_hint": TEXT,
            "resource_metadata": {"type": "string", "format": "uri"},
            "next_step": TEXT,
            **UNAVAILABLE,
        },
    )
    return closed({"error": error})


# The shapes of what discovery, writes and the owner's routes answer.
#
# Source: docs/contract/resource-server.md 5, 12 to 14.


INDEX = closed(
    {
        "object": constant("pdpp_discovery_index"),
        "role": constant("resource_server"),
        "resource_name": TEXT,
        "links": map_of(WORD),
    }
)
RESOURCE: Shape = {
    "type": "object",
    "required": ["resource", "authorization_servers", "pdpp_core_query_base"],
    "properties": {
        "resource": {"type": "string", "format": "uri"},
        "authorization_servers": array({"type": "string", "format": "uri"}, minItems=1),
        "pdpp_core_query_base": {"type": "string", "pattern": "/v1$"},
    },
}
OWNER_SHAPES: Mapping[str, Shape] = {
    "Index": INDEX,
    "Resource": RESOURCE,
    "OpenApi": {"type": "object", "required": ["openapi", "paths"]},
}


# The shape of a source declaration as a request body.  Source: docs/contract/resource-server.md 17.
#
# Rule: it says less than the parser checks (declared names, unique ids) and never more.


_VERSION: Shape = {"type": "string", "minLength": 1, "maxLength": 64}
_NAME: Shape = {"type": "string", "pattern": f"^{declaration_document.STREAM_NAME.pattern}$"}
_NAMES = array(_NAME)
_COUNT: Shape = {"type": "integer", "minimum": 1, "maximum": declaration_document.MAX_CHILDREN}


def _kept(names: Iterable[str]) -> Mapping[str, Shape]:
    """Members that are kept and not interpreted."""
    return dict.fromkeys(sorted(names), ANYTHING)


_VIEW = closed({"id": TEXT, "label": TEXT, "fields": _NAMES}, {"description": ANYTHING})
_RELATIONSHIP = closed(
    {
        "name": _NAME,
        "stream": _NAME,
        "foreign_key": _NAME,
        "cardinality": one_of(*[c.value for c in Cardinality]),
    },
    {"foreign_key_on": one_of("target", "self"), "description": ANYTHING},
)
_AGGREGATIONS = closed(
    {},
    {
        "count": FLAG,
        **dict.fromkeys(
            ("sum", "min", "max", "count_distinct", "group_by", "group_by_time"), _NAMES
        ),
    },
)
_QUERY = closed(
    {},
    {
        "range_filters": map_of(array(one_of(*RANGE_OPERATORS))),
        "expand": array(closed({"name": _NAME}, {"default_limit": _COUNT, "max_limit": _COUNT})),
        "search": closed({}, {"lexical_fields": _NAMES, "semantic_fields": _NAMES}),
        "aggregations": _AGGREGATIONS,
    },
)
_STREAM = closed(
    {
        "name": _NAME,
        "semantics": one_of(*[s.value for s in Semantics]),
        "display": closed({"label": TEXT}, {"detail": TEXT}),
        "schema": MAP,
        "primary_key": array(_NAME, minItems=1, maxItems=declaration_document.MAX_KEY_FIELDS),
        "selection": closed({}, {"fields": FLAG, "resources": FLAG}),
    },
    {
        "cursor_field": _NAME,
        "consent_time_field": _NAME,
        "views": array(_VIEW),
        "relationships": array(_RELATIONSHIP),
        "query": _QUERY,
        **_kept(declaration_document.STREAM_COLLECTION_MEMBERS),
    },
)
_REFRESH = closed(
    {},
    {
        "maximum_staleness_seconds": {"type": "integer", "minimum": 1},
        **_kept(declaration_document.REFRESH_MEMBERS),
    },
)
DECLARATION_BODY: Shape = {
    **closed(
        {
            "protocol_version": constant(declaration_document.PROTOCOL_VERSION),
            "connector_key": {
                "type": "string",
                "pattern": f"^{declaration_document.CONNECTOR_KEY.pattern}$",
            },
            "streams": array(_STREAM, minItems=1),
        },
        {
            "source": SOURCE,
            "connector_id": TEXT,
            "declaration_version": _VERSION,
            "version": _VERSION,
            "display": closed({}, {"name": TEXT, "detail": TEXT}),
            "display_name": TEXT,
            "publisher": closed({"id": TEXT}, {"name": ANYTHING, "uri": ANYTHING}),
            "capabilities": closed(
                {},
                {
                    "refresh_policy": _REFRESH,
                    "human_interaction": ANYTHING,
                    "public_listing": ANYTHING,
                },
            ),
            "selection_presets": array(MAP),
            "extensions": MAP,
            **_kept(declaration_document.COLLECTION_MEMBERS),
        },
    ),
    "allOf": [
        {"anyOf": [{"required": ["source"]}, {"required": ["connector_id"]}]},
        {"anyOf": [{"required": ["declaration_version"]}, {"required": ["version"]}]},
        {"anyOf": [{"required": ["display"]}, {"required": ["display_name"]}]},
    ],
}
