"""Shapes: the words in which answers are described, and what all answers share.

Rule: objects are closed; a member that is not described here may not be sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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


FRESHNESS = closed(
    {
        "status": one_of("current", "stale", "unknown"),
        "captured_at": nullable(INSTANT),
        "last_attempted_at": nullable(INSTANT),
    }
)
SOURCE = closed({"kind": one_of("connector", "provider_native"), "id": WORD})
IDENTITY: Mapping[str, Shape] = {"connection_id": CONNECTION_ID, "connector_key": WORD}
LABELS: Mapping[str, Shape] = {"display_name": TEXT, "grant_id": TEXT}
WARNING = closed(
    {
        "code": one_of(
            "limit_clamped",
            "deprecated_alias_used",
            "source_skipped_not_applicable",
            "source_unavailable",
            "partial_results",
        ),
        "message": TEXT,
    },
    {"param": TEXT, "field": TEXT, "connection_id": TEXT, "detail": MAP},
)
META_COUNT = either(
    closed({"kind": constant("none")}),
    closed({"kind": one_of("exact", "estimated"), "value": COUNT}),
)
UNAVAILABLE: Mapping[str, Shape] = {
    "unavailable_connections": array(ref("UnavailableConnection"), maxItems=12),
    "unavailable_connection_count": COUNT,
}
META_REQUIRED: Mapping[str, Shape] = {"count": META_COUNT, "warnings": array(ref("Warning"))}
META_OPTIONAL: Mapping[str, Shape] = {
    "freshness": ref("Freshness"),
    "window": MAP,
    "recall": MAP,
    "source_mix": array(MAP),
    "package": MAP,
    "count_accuracy": TEXT,
    **UNAVAILABLE,
}
META = closed(META_REQUIRED, META_OPTIONAL)


def list_of(item: Shape, **optional: Shape) -> Shape:
    """The list envelope around items.  Source: RS contract 2.2."""
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


AVAILABLE = closed({**IDENTITY}, {**LABELS, "has_stream": FLAG})
UNAVAILABLE_CONNECTION = closed(
    {"reason": TEXT, "next_step": one_of("reapprove", "choose_another")},
    {"connection_id": TEXT, "connector_key": TEXT, "stream": TEXT, **LABELS},
)


def error_shape(codes: Sequence[str]) -> Shape:
    """The error envelope.  Source: RS contract 2.1."""
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


SHARED: Mapping[str, Shape] = {
    "Freshness": FRESHNESS,
    "Warning": WARNING,
    "Meta": META,
    "AvailableConnection": AVAILABLE,
    "UnavailableConnection": UNAVAILABLE_CONNECTION,
}
