"""The shapes of what discovery, writes and the owner's routes answer.

Source: RS contract 5, 12 to 14.
"""

from __future__ import annotations

from collections.abc import Mapping

from personal_server.domain.connection import ConnectionStatus
from personal_server.resource_server.shapes import (
    CONNECTION_ID,
    COUNT,
    INSTANT,
    MAP,
    SOURCE,
    TEXT,
    WORD,
    Shape,
    array,
    closed,
    constant,
    list_of,
    map_of,
    nullable,
    one_of,
    ref,
    single,
)

_SHA256: Shape = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_DIGEST: Shape = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}

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
BLOB = closed(
    {
        "object": constant("blob"),
        "blob_id": {"type": "string", "pattern": "^blob_sha256_[0-9a-f]{64}$"},
        "sha256": _SHA256,
        "size_bytes": COUNT,
        "mime_type": WORD,
    }
)
_REJECTION = closed(
    {
        "input_index": COUNT,
        "receipt_id": WORD,
        "code": one_of(
            "invalid_utf8",
            "malformed_ndjson",
            "line_too_large",
            "invalid_record",
            "invalid_record_identity",
            "record_schema_violation",
            "append_only_conflict",
        ),
        "message": TEXT,
    },
    {"path": nullable(TEXT)},
)
INGEST_RESULT = closed(
    {
        "object": constant("ingest_result"),
        "stream": WORD,
        "connection_id": CONNECTION_ID,
        "records_attempted": COUNT,
        "records_accepted": COUNT,
        "records_changed": COUNT,
        "records_rejected": COUNT,
        "errors": array({}, maxItems=0),
        "rejections": array(_REJECTION, maxItems=1_000),
    }
)
STREAM_STATE = closed(
    {
        "object": constant("stream_state"),
        "connector_id": WORD,
        "connection_id": CONNECTION_ID,
        "grant_id": {"type": "null"},
        "state": MAP,
        "updated_at": nullable(INSTANT),
    }
)
DELETION = closed(
    {"object": constant("deletion"), "connection_id": CONNECTION_ID, "deleted_count": COUNT},
    {"stream": WORD},
)
_DECLARATION: Mapping[str, Shape] = {
    "connector_key": WORD,
    "declaration_version": WORD,
    "digest": _DIGEST,
}
DECLARATION_SUMMARY = closed(
    {
        "object": constant("source_declaration_summary"),
        **_DECLARATION,
        "source": SOURCE,
        "stream_count": COUNT,
        "connection_count": COUNT,
        "registered_at": INSTANT,
    }
)
DECLARATION = single("source_declaration", {**_DECLARATION, "declaration": MAP})
_RUN = closed(
    {"run_id": WORD, "status": one_of("running", "succeeded", "failed", "cancelled"), "at": INSTANT}
)
_CONNECTION: Mapping[str, Shape] = {
    "connection_id": CONNECTION_ID,
    "connector_key": WORD,
    "connector_id": WORD,
    "source": SOURCE,
    "display_name": nullable(TEXT),
    "label_status": one_of("owner_set", "fallback"),
    "status": one_of(*[status.value for status in ConnectionStatus]),
    "record_count": COUNT,
    "last_run": nullable(_RUN),
    "freshness": ref("Freshness"),
    "created_at": INSTANT,
    "updated_at": INSTANT,
    "revoked_at": nullable(INSTANT),
    "supported_actions": array(WORD),
}
REJECTION = closed(
    {
        "object": constant("ingest_rejection"),
        "receipt_id": WORD,
        "stream": WORD,
        "code": WORD,
        "path": nullable(TEXT),
        "run_id": nullable(TEXT),
        "at": INSTANT,
    }
)
DISCLOSURE = closed(
    {
        "object": constant("disclosure"),
        "disclosure_id": WORD,
        "at": INSTANT,
        "request_id": WORD,
        "outcome": one_of("served", "denied"),
        "error_code": nullable(TEXT),
        "token_kind": one_of("client", "mcp_package", "owner"),
        "client_id": nullable(TEXT),
        "grant_id": nullable(TEXT),
        "grant_package_id": nullable(TEXT),
        "channel": one_of("mcp", "rest"),
        "tool": nullable(TEXT),
        "route": WORD,
        "connector_key": nullable(TEXT),
        "connection_id": nullable(TEXT),
        "stream": nullable(TEXT),
        "fields": array(TEXT),
        "record_count": COUNT,
        "bytes": COUNT,
    }
)

OWNER_SHAPES: Mapping[str, Shape] = {
    "Index": INDEX,
    "Resource": RESOURCE,
    "OpenApi": {"type": "object", "required": ["openapi", "paths"]},
    "Blob": BLOB,
    "IngestResult": INGEST_RESULT,
    "StreamState": STREAM_STATE,
    "Deletion": DELETION,
    "DeclarationList": list_of(DECLARATION_SUMMARY),
    "Declaration": DECLARATION,
    "ConnectionList": list_of(closed({"object": constant("owner_connection"), **_CONNECTION})),
    "Connection": single("owner_connection", _CONNECTION),
    "RejectionList": list_of(REJECTION),
    "DisclosureList": list_of(DISCLOSURE),
}
