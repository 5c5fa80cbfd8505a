"""Outcomes as the protocol writes them, without its library.

Rule: what is written equals, byte for byte, what the library writes: members by their names in
order, those without value left out.  Source: docs/contract/mcp-adapter.md 2.4, 4.2, 4.4, 8.1.
"""

from __future__ import annotations

from typing import Any

import orjson

from pdpp_mcp_server.calls import Link, Outcome, ToolCall
from pdpp_mcp_server.rs_client.json_values import Json

PREFIX = "pdpp.dev/"
WITHOUT_ORIGIN = frozenset({"fetch"})
"""Tools whose results name neither request nor provider."""


def plain_answer(message_id: object, call: ToolCall, outcome: Outcome) -> bytes | None:
    """The answer to one call; None where the library has to write it."""
    if outcome.written is None:
        return None
    blocks: list[Json] = [{"text": outcome.text, "type": "text"}]
    if outcome.image is not None:
        image = outcome.image
        blocks.append({"data": image.data, "mimeType": image.mime_type, "type": "image"})
    blocks += [_link(link) for link in links_shown(call, outcome)]
    members: Json = {
        "_meta": meta_of(call, outcome),
        "content": blocks,
        "isError": outcome.is_error,
    }
    try:
        beginning = orjson.dumps({"jsonrpc": "2.0", "id": message_id, "result": members})
    except TypeError:
        return None
    # the structure was written when its size was told, and is the last member
    written = outcome.written.encode()
    return b"".join((beginning[:-2], b',"structuredContent":', written, b"}}"))


def links_shown(call: ToolCall, outcome: Outcome) -> tuple[Link, ...]:
    """The links that are blocks of their own."""
    if outcome.is_error or (call.openai and call.tool == "search"):
        return ()
    return outcome.links


def meta_of(call: ToolCall, outcome: Outcome) -> dict[str, Any]:
    """What a result says of itself."""
    meta: dict[str, Any] = {}
    if call.tool not in WITHOUT_ORIGIN:
        if outcome.request_id:
            meta[f"{PREFIX}request_id"] = outcome.request_id
        meta[f"{PREFIX}provider_url"] = call.provider_url
    meta[f"{PREFIX}untrusted"] = [] if outcome.is_error else list(outcome.untrusted)
    text_chars, structured_chars = outcome.sizes
    meta[f"{PREFIX}size"] = {"text_chars": text_chars, "structured_chars": structured_chars}
    return meta


def _link(link: Link) -> Json:
    members = {
        "annotations": {"audience": ["user"], "priority": 0.1},
        "mimeType": link.mime_type,
        "name": link.name,
        "size": link.size_bytes,
        "type": "resource_link",
        "uri": link.uri,
    }
    return {name: value for name, value in members.items() if value is not None}
