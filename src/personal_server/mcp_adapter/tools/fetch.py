"""fetch: one record as a document {id, title, text, url, metadata}; the text face is the same JSON.

Source: docs/contract/mcp-adapter.md 10.5; docs/decisions.md C2, C21.
"""

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter.arguments import Arguments, parse_arguments, without
from personal_server.mcp_adapter.calls import Outcome, ToolCall
from personal_server.mcp_adapter.errors import ToolError
from personal_server.mcp_adapter.faces.content_ladder import links_of
from personal_server.mcp_adapter.faces.document import Document, render_document, without_twins
from personal_server.mcp_adapter.handles import RecordRef, parse_id
from personal_server.mcp_adapter.reads import read
from personal_server.mcp_adapter.safe_text import escaped_json, quoted
from personal_server.mcp_adapter.tools.expansion import encode_expand, pass_expand_gate
from personal_server.rs_client.json_values import as_object, objects_in
from personal_server.rs_client.port import Query

UNTRUSTED = ("/title", "/text", "/url", "/metadata/fields", "/metadata/expanded")


async def fetch(call: ToolCall, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    arguments, (record, relations) = parse_arguments("fetch", raw, check_shape)
    described = await pass_expand_gate(call, arguments, record.stream, record.connection_id)
    fields: tuple[str, ...] = tuple(arguments.get("fields", ()))
    query = (*record.scope, *(("fields", name) for name in fields), *relations)
    response = await read(call, record.path, query, arguments)
    body = as_object(response.body)
    document = Document(
        arguments["id"], record, body, fields, described.binary_fields, described.relations
    )
    whole = render_document(call, document)
    structured = without_twins(whole)
    return Outcome(
        structured=structured,
        text=escaped_json(structured),
        links=links_of(call, objects_in(whole["metadata"]["content_ladder"])),
        untrusted=UNTRUSTED,
        rows=1,
    )


def check_shape(arguments: Arguments) -> tuple[RecordRef, Query]:
    """The record, and the parameters of its expansion.

    Raises: ToolError invalid_id, conflicting_connection_id, invalid_expand.
    """
    return record_of(arguments), encode_expand(arguments)


def record_of(arguments: Arguments) -> RecordRef:
    """The record an id names, on the connection of id or argument; no connection is invented.

    Source: docs/contract/mcp-adapter.md 9.3.
    Raises: ToolError invalid_id, conflicting_connection_id.
    """
    record = parse_id(arguments["id"])
    scope: str | None = arguments.get("connection_id")
    if scope is None or record.connection_id == scope:
        return record
    if record.connection_id is not None:
        raise ToolError(
            "conflicting_connection_id",
            f"The id names connection {quoted(record.connection_id)}, the argument"
            f" {quoted(scope)}. Leave `connection_id` out.",
            param="connection_id",
            repairs=(without(arguments, "connection_id"),),
        )
    return RecordRef(scope, record.stream, record.record_id)
