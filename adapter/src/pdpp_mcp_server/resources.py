"""Resources: the same reads as the tools, named by URI; every use is a fresh read.

Source: docs/contract/mcp-adapter.md 11, 13. Failures are refusals, never a success whose text is an
error.
"""

from base64 import b64encode
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import without
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.field_window import WindowRequest
from pdpp_mcp_server.faces.record_identity import blob_url, record_url
from pdpp_mcp_server.faces.text import NOTICE
from pdpp_mcp_server.handles import (
    BLOB_PREFIX,
    HANDLE_CHARS,
    RECORD_PREFIX,
    WINDOW_PREFIX,
    WindowRef,
    connection_scope,
    format_id,
    is_part,
    parse_blob_handle,
    parse_record_handle,
    parse_window_handle,
    window_uri,
)
from pdpp_mcp_server.read_refusals import refusal
from pdpp_mcp_server.reads import (
    answer,
    read,
)
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, compact
from pdpp_mcp_server.schema_document import (
    ConnectionLabel,
    all_connections,
    catalog_rows,
    unavailable_in,
)
from pdpp_mcp_server.shipped_skills import skill_at
from pdpp_mcp_server.tools.read_record_field import read_window
from pdpp_mcp_server.tools.schema import index_data, read_compact, stream_data
from pdpp_mcp_server.window_cursors import (
    WindowCursor,
    field_key,
    short_digest,
)

JSON_TYPE = "application/json"
TYPES_TYPE = "application/typescript"
SKILL_TYPE = "text/markdown"
STREAM_PREFIX = "pdpp://stream/"
SCHEMA_TTL_MS = 30_000
TYPES_TTL_MS = 300_000


class Content(msgspec.Struct, frozen=True):
    """One item of a resource: text, or base64 of bytes."""

    mime_type: str
    text: str | None = None
    blob: str | None = None
    untrusted: bool = False
    next_uri: str | None = None
    previous_uri: str | None = None


class Resource(msgspec.Struct, frozen=True):
    """What was read, and how long it may be kept."""

    contents: tuple[Content, ...]
    ttl_ms: int = 0


class ListedResource(msgspec.Struct, frozen=True):
    """A resource or template as it is listed."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str | None


FIXED = (
    ListedResource(
        "pdpp://schema", "schema", "Granted data", "Index of what this access covers.", JSON_TYPE
    ),
    ListedResource(
        "pdpp://grant",
        "grant",
        "This access",
        "What this access allows, and when it ends.",
        JSON_TYPE,
    ),
    ListedResource(
        "pdpp://types", "types", "Types", "Arguments and results as TypeScript.", TYPES_TYPE
    ),
)
TEMPLATES = (
    ListedResource("pdpp://stream/{name}", "stream", "Stream", "Fields and abilities.", JSON_TYPE),
    ListedResource("pdpp://record/{handle}", "record", "Record", "One record as JSON.", JSON_TYPE),
    ListedResource(
        "pdpp://field-window/{handle}",
        "field-window",
        "Part of a field",
        "One bounded window of a text field.",
        "text/plain",
    ),
    ListedResource("pdpp://blob/{handle}", "blob", "File", "Bytes of one file.", None),
)


async def read_resource(call: ToolCall, uri: str) -> Resource:
    """Read one URI.

    Raises: ToolError.
    """
    fixed = FIXED_READERS.get(uri)
    if fixed is not None:
        return await fixed(call)
    skill = skill_at(uri)
    if skill is not None:
        return Resource((Content(SKILL_TYPE, skill.text),), TYPES_TTL_MS)
    for prefix, reader in READERS.items():
        if uri.startswith(prefix):
            return await reader(call, _only_segment(uri.removeprefix(prefix)))
    raise not_found()


def not_found() -> ToolError:
    """The refusal of a URI that names nothing."""
    expected = ", ".join(item.uri for item in (*FIXED, *TEMPLATES))
    return ToolError("not_found", "No such resource.", param="uri", expected=expected)


def _only_segment(rest: str) -> str:
    # to decode one of megabytes takes seconds, before any limit of a grant is asked
    if not 0 < len(rest) <= HANDLE_CHARS or any(char in "/?#" for char in rest):
        raise ToolError("invalid_id", "This URI is malformed.", param="uri")
    return rest


def _json(value: object, *, untrusted: bool = False) -> Content:
    return Content(JSON_TYPE, compact(value), untrusted=untrusted)


async def _schema(call: ToolCall) -> Resource:
    catalog, _ = await read_compact(call, {})
    return Resource((_json(index_data(catalog)),), SCHEMA_TTL_MS)


async def _types(call: ToolCall) -> Resource:
    del call
    return Resource((Content(TYPES_TYPE, contract.published_types()),), TYPES_TTL_MS)


async def _grant(call: ToolCall) -> Resource:
    catalog, _ = await read_compact(call, {})
    bearer = as_object(catalog.get("bearer"))
    manage = as_text(bearer.get("manage_url")) or ""
    manage = manage if "://" in manage else f"{call.provider_url}{manage}"
    rows = catalog_rows(catalog)
    found: Json = {
        "bearer": bearer,
        "connector_count": len({row.connector_key for row in rows}),
        "stream_count": len({(row.connector_key, row.name) for row in rows}),
        "connections": [_connection(*found) for found in all_connections(catalog).values()],
        "unavailable_connections": unavailable_in(catalog),
        "how_to_change": f"The person ends this access or approves another one at {manage}.",
    }
    return Resource((_json(found),))


def _connection(connection: ConnectionLabel, connector_key: str | None) -> Json:
    entry: Json = {"connection_id": connection.connection_id, "connector_key": connector_key}
    return {**entry, "display_name": connection.display_name} if connection.display_name else entry


async def _stream(call: ToolCall, name: str) -> Resource:
    stream = unquote(name)
    if not is_part(stream) or unquote(stream) != stream:
        raise ToolError("invalid_id", "This URI is malformed.", param="uri")
    catalog, _ = await read_compact(call, {"stream": stream})
    if not catalog_rows(catalog):
        raise not_found()
    return Resource((_json(stream_data(catalog)),), SCHEMA_TTL_MS)


async def _record(call: ToolCall, handle: str) -> Resource:
    record = parse_record_handle(handle)
    response = await read(call, record.path, record.scope, {})
    content = _json(response.body, untrusted=True)
    size = len((content.text or "").encode())
    if size > contract.RECORD_RESOURCE_BYTES:
        raise _too_large(size, record_url(call.provider_url, record))
    return Resource((content, _json({"notice": NOTICE}, untrusted=True)))


async def _window(call: ToolCall, handle: str) -> Resource:
    window = parse_window_handle(handle)
    key = field_key(window.record, window.field_path)
    digest = short_digest(window.digest)
    cursor = WindowCursor(key, window.offset_chars, window.limit_chars, digest)
    arguments = {"id": format_id(window.record), "field_path": window.field_path}
    outcome = await read_window(call, WindowRequest(window.record, arguments, cursor))
    record, field = outcome.structured["record"], outcome.structured["field"]
    shown = outcome.structured["window"]
    following, before = _neighbours(outcome.structured, window)
    header: Json = {
        "notice": NOTICE,
        "record": record,
        "field": field,
        "window": without(shown, "text", "match"),
        "next_uri": following,
        "previous_uri": before,
    }
    text = Content("text/plain", shown["text"], None, True, following, before)
    return Resource((text, _json(header, untrusted=True)))


def _neighbours(structured: Json, window: WindowRef) -> tuple[str | None, str | None]:
    """The addresses of the window after this one and of the one before, where there is one."""
    shown = structured["window"]
    record = window.record._replace(connection_id=structured["record"]["connection_id"])
    digest = as_text(structured["field"].get("digest"))

    def at(offset: int) -> str:
        limit: int = shown["limit_chars"]
        return window_uri(WindowRef(record, window.field_path, offset, limit, digest))

    following = at(shown["end_chars"]) if shown["next_cursor"] else None
    before = max(0, shown["start_chars"] - shown["limit_chars"])
    return following, at(before) if shown["previous_cursor"] else None


async def _blob(call: ToolCall, handle: str) -> Resource:
    blob = parse_blob_handle(handle)
    path, scope = ("v1", "blobs", blob.blob_id), connection_scope(blob.connection_id)
    response = await answer(call, path, scope, {}, max_bytes=call.settings.max_blob_bytes)
    if not response.ok:
        raise refusal(call, response, {})
    if response.content is None:
        url = blob_url(call.provider_url, blob.blob_id, blob.connection_id)
        raise _too_large(response.total_bytes or 0, url)
    kind = (response.content_type or "application/octet-stream").split(";")[0].strip()
    return Resource((Content(kind, None, b64encode(response.content).decode(), True),))


def _too_large(size_bytes: int, url: str) -> ToolError:
    members: Json = {"size_bytes": size_bytes, "url": url}
    return ToolError("resource_too_large", "Too large for MCP; read it over REST.", members=members)


FIXED_READERS: dict[str, Callable[[ToolCall], Awaitable[Resource]]] = {
    "pdpp://schema": _schema,
    "pdpp://grant": _grant,
    "pdpp://types": _types,
}
READERS: dict[str, Callable[[ToolCall, str], Awaitable[Resource]]] = {
    STREAM_PREFIX: _stream,
    RECORD_PREFIX: _record,
    WINDOW_PREFIX: _window,
    BLOB_PREFIX: _blob,
}
