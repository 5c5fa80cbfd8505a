"""An outcome as the SDK sends it: typed blocks, links, and what belongs in `_meta`.

Source: MCP adapter contract 4.2, 4.4, 8.1.
"""

from typing import Any

import mcp_types as types

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.calls import Call, Link, Outcome
from personal_server.rs_client.json_values import compact

prefix = "pdpp.dev/"
without_origin = frozenset({"fetch"})
"""Tools whose results name neither request nor provider."""


def call_result(call: Call, outcome: Outcome) -> tuple[types.CallToolResult, tuple[int, int]]:
    """The result, and the characters of both faces."""
    sizes = (len(outcome.text), len(compact(outcome.structured)))
    blocks: list[types.ContentBlock] = [types.TextContent(text=outcome.text)]
    if not outcome.is_error and not (call.openai and call.tool == "search"):
        blocks += [resource_link(link) for link in outcome.links[: budgets.links]]
    result = types.CallToolResult(
        content=blocks,
        structured_content=outcome.structured,
        is_error=outcome.is_error,
        _meta=_meta(call, outcome, sizes),
    )
    return result, sizes


def _meta(call: Call, outcome: Outcome, sizes: tuple[int, int]) -> dict[str, Any]:
    meta: dict[str, Any] = {}
    if call.tool not in without_origin:
        if outcome.request_id:
            meta[f"{prefix}request_id"] = outcome.request_id
        meta[f"{prefix}provider_url"] = call.provider_url
    meta[f"{prefix}untrusted"] = [] if outcome.is_error else list(outcome.untrusted)
    meta[f"{prefix}size"] = {"text_chars": sizes[0], "structured_chars": sizes[1]}
    return meta


def resource_link(link: Link) -> types.ResourceLink:
    """One link, meant for a person."""
    return types.ResourceLink(
        name=link.name,
        uri=link.uri,
        mime_type=link.mime_type,
        size=link.size_bytes,
        annotations=types.Annotations(audience=["user"], priority=0.1),
    )
