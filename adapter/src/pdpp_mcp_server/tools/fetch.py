"""fetch: one record as a document {id, title, text, url, metadata}; the text face is the same JSON.

Source: docs/contract/mcp-adapter.md 10.5; docs/decisions.md C2, C21.
"""

from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import Arguments, parse_arguments, without
from pdpp_mcp_server.calls import Image, Outcome, ToolCall
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.content_ladder import links_of
from pdpp_mcp_server.faces.document import Document, render_document, without_twins
from pdpp_mcp_server.faces.images import (
    NO_FILE,
    NO_IMAGE,
    TOO_LARGE,
    file_in,
    image_type,
    is_image,
    may_be_shown,
    not_shown,
    shown,
)
from pdpp_mcp_server.faces.truncation import DATA_URL
from pdpp_mcp_server.handles import RecordRef, parse_id
from pdpp_mcp_server.reads import answer, read
from pdpp_mcp_server.rs_client.answers import error_of
from pdpp_mcp_server.rs_client.json_values import Json, as_object, objects_in
from pdpp_mcp_server.rs_client.port import Query
from pdpp_mcp_server.safe_text import escaped_json, quoted
from pdpp_mcp_server.tools.expansion import encode_expand, pass_expand_gate

UNTRUSTED = ("/title", "/text", "/url", "/metadata/fields", "/metadata/expanded")


async def fetch(call: ToolCall, raw: Mapping[str, Any] | None) -> Outcome:
    """Check, read and render.

    Raises: ToolError.
    """
    arguments, (record, relations) = parse_arguments("fetch", raw, check_shape)
    described = await pass_expand_gate(call, arguments, record.stream, record.connection_id)
    fields: tuple[str, ...] = tuple(arguments.get("fields", ()))
    query = (*record.scope, *(("fields", name) for name in fields), *relations)
    if await call.takes(ReadCapability.RECORD_TIME):
        query = await call.dated(query)
    response = await read(call, record.path, query, arguments)
    body = as_object(response.body)
    document = Document(
        arguments["id"], record, body, fields, described.binary_fields, described.relations
    )
    image = None
    if "as" in arguments:
        image, image_text = await _image(call, document, arguments)
        document = replace(document, image=image_text)
    whole = render_document(call, document)
    structured = without_twins(whole)
    return Outcome(
        structured=structured,
        text=escaped_json(structured),
        links=links_of(call, objects_in(whole["metadata"]["content_ladder"])),
        image=image,
        untrusted=UNTRUSTED,
        rows=1,
    )


async def _image(
    call: ToolCall, document: Document, arguments: Arguments
) -> tuple[Image | None, Json]:
    """The first small image of a record, and what the document says of it.

    Raises: ToolError, for a failure of the port.
    """
    file = file_in(document.payload)
    if file is None or not may_be_shown(file.facts):
        why = TOO_LARGE if file and is_image(file.facts) else NO_IMAGE
        return None, not_shown(why if file else NO_FILE, file)
    content = _inline_bytes(file.value)
    if file.facts.blob_id is not None:
        path, scope = ("v1", "blobs", file.facts.blob_id), document.record.scope
        response = await answer(call, path, scope, arguments, max_bytes=contract.IMAGE_BYTES)
        if not response.ok:
            return None, not_shown(f"its bytes: {error_of(response)['code']}", file)
        content = response.content
    if content is None or len(content) > contract.IMAGE_BYTES:
        return None, not_shown(TOO_LARGE, file)
    kind = image_type(content)
    if kind is None:
        return None, not_shown(NO_IMAGE, file)
    return Image(b64encode(content).decode(), kind), shown(file.name, kind)


def _inline_bytes(value: object) -> bytes | None:
    """The bytes that a text holds by itself, as a data URL or as base64."""
    if not isinstance(value, str):
        return None
    prefix = DATA_URL.match(value)
    text = "".join(value[prefix.end() if prefix else 0 :].split())
    try:
        decode = urlsafe_b64decode if "-" in text or "_" in text else b64decode
        return decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None


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
