"""fetch: one record as a document {id, title, text, url, metadata}; the text face is the same JSON.

Source: docs/contract/mcp-adapter.md 10.5; docs/decisions.md C2, C21.
"""

from collections.abc import Callable, Mapping
from typing import Any

from personal_server.mcp_adapter.arguments import legal_or_none, parse_arguments
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.contract import published_contract
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.faces.document import Document, render_document
from personal_server.mcp_adapter.faces.records import links_of
from personal_server.mcp_adapter.handles import RecordRef, parse_id
from personal_server.mcp_adapter.reads import read
from personal_server.mcp_adapter.safe_text import escaped_json, quoted
from personal_server.mcp_adapter.tools.expansion import encode_expand, pass_expand_gate
from personal_server.rs_client.json_values import as_object, objects_in
from personal_server.rs_client.port import Path, Query

# Which record a call means: an id in any form, and the argument that may scope it.
#
# Source: docs/contract/mcp-adapter.md 9.3. The adapter never invents a connection.


Legal = Callable[[dict[str, Any]], NextCall | None]


def record_of(asked: Mapping[str, Any], legal: Legal) -> RecordRef:
    """The record an id names, on the connection of id or argument; legal judges advice.

    Raises: ToolError invalid_id, conflicting_connection_id.
    """
    record = parse_id(asked["id"])
    scope: str | None = asked.get("connection_id")
    if scope is None or record.connection_id == scope:
        return record
    if record.connection_id is not None:
        rest = {name: value for name, value in asked.items() if name != "connection_id"}
        raise ToolError(
            "conflicting_connection_id",
            f"The id names connection {quoted(record.connection_id)}, the argument"
            f" {quoted(scope)}. Leave `connection_id` out.",
            param="connection_id",
            next_call=legal(rest),
        )
    return RecordRef(scope, record.stream, record.record_id)


untrusted = ("/title", "/text", "/url", "/metadata/fields", "/metadata/expanded")


async def fetch(call: Call, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    asked = parse_arguments(published_contract().tools["fetch"], raw, check_shape)
    record = record_of(asked, _legal)
    relations = _relations(asked)
    declared = await pass_expand_gate(call, asked, record.stream, record.connection_id)
    fields: tuple[str, ...] = tuple(asked.get("fields", ()))
    query = (*_scope(record), *(("fields", name) for name in fields), *relations)
    response = await read(call, record_path(record), query, asked)
    document = Document(asked["id"], record, as_object(response.body), fields, declared)
    structured = render_document(call, document)
    ladder = objects_in(structured["metadata"]["content_ladder"])
    return Outcome(
        structured=structured,
        text=escaped_json(structured),
        links=links_of(call, ladder),
        untrusted=untrusted,
        rows=1,
    )


def record_path(record: RecordRef) -> Path:
    """Where a record is read."""
    return ("v1", "streams", record.stream, "records", record.record_id)


def _scope(record: RecordRef) -> Query:
    return (("connection_id", record.connection_id),) if record.connection_id else ()


def _relations(asked: dict[str, Any]) -> Query:
    try:
        return encode_expand(asked)
    except ToolError as error:
        rest = {name: value for name, value in asked.items() if not name.startswith("expand")}
        raise error.with_next(_legal(rest)) from None


def _legal(arguments: dict[str, Any]) -> NextCall | None:
    return legal_or_none(published_contract().tools["fetch"], arguments, check_shape)


def check_shape(asked: dict[str, Any]) -> Query:
    """The checks of this tool that need no resource server.

    Raises: ToolError.
    """
    record_of(asked, _legal)
    return encode_expand(asked)
