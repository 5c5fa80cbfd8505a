"""Outcomes and lists as the SDK sends them: typed blocks, links, and what belongs in `_meta`.

Source: docs/contract/mcp-adapter.md 2.4, 4.2, 4.4, 8.1, 11 to 13. Lists are built once.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from pdpp_mcp_server.calls import Link, Outcome, ToolCall
from pdpp_mcp_server.contract import TTL_MS, published_contract
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.refusal import render_refusal
from pdpp_mcp_server.plain_results import PREFIX, links_shown, meta_of
from pdpp_mcp_server.prompts import PROMPTS, Prompt
from pdpp_mcp_server.resources import FIXED, TEMPLATES, Content, Resource
from pdpp_mcp_server.rs_client.json_values import Json, as_object

RESOURCE_NOT_FOUND = -32002
HANDSHAKE_ERAS = ("2024-", "2025-")
OUR_FAILURES = frozenset({"rs_timeout", "rs_unreachable", "rs_invalid_response", "internal_error"})


def call_result(call: ToolCall, outcome: Outcome) -> tuple[types.CallToolResult, tuple[int, int]]:
    """The result, and the characters of both faces."""
    blocks: list[types.ContentBlock] = [types.TextContent(text=outcome.text)]
    if outcome.image is not None:
        blocks.append(
            types.ImageContent(data=outcome.image.data, mime_type=outcome.image.mime_type)
        )
    blocks += [_resource_link(link) for link in links_shown(call, outcome)]
    result = types.CallToolResult(
        content=blocks,
        structured_content=outcome.structured,
        is_error=outcome.is_error,
        _meta=meta_of(call, outcome),
    )
    return result, outcome.sizes


def _resource_link(link: Link) -> types.ResourceLink:
    return types.ResourceLink(
        name=link.name,
        uri=link.uri,
        mime_type=link.mime_type,
        size=link.size_bytes,
        annotations=types.Annotations(audience=["user"], priority=0.1),
    )


def resource_result(uri: str, found: Resource) -> types.ReadResourceResult:
    """The contents of a resource."""
    return types.ReadResourceResult(
        contents=[_contents(uri, item) for item in found.contents],
        ttl_ms=found.ttl_ms,
        cache_scope="private",
    )


def _contents(uri: str, item: Content) -> types.TextResourceContents | types.BlobResourceContents:
    meta: dict[str, Any] = {f"{PREFIX}untrusted": True} if item.untrusted else {}
    for name, value in (("next_uri", item.next_uri), ("previous_uri", item.previous_uri)):
        if value is not None:
            meta[f"{PREFIX}{name}"] = value
    if item.blob is not None:
        return types.BlobResourceContents(
            uri=uri, mime_type=item.mime_type, blob=item.blob, _meta=meta or None
        )
    return types.TextResourceContents(
        uri=uri, mime_type=item.mime_type, text=item.text or "", _meta=meta or None
    )


def resource_error(uri: str, error: ToolError, protocol_version: str) -> MCPError:
    """A refused resource as a JSON-RPC error; the code follows the protocol era."""
    body: Json = as_object(render_refusal(error).structured["error"])
    if as_object(body.get("next_call")).get("tool") not in published_contract().tools:
        body.pop("next_call", None)
    code = types.INVALID_PARAMS
    if error.code in OUR_FAILURES:
        code = types.INTERNAL_ERROR
    elif protocol_version.startswith(HANDSHAKE_ERAS):
        code = RESOURCE_NOT_FOUND
    return MCPError(code, str(body["message"]), data={"uri": uri, "error": body})


@cache
def list_tools_result() -> types.ListToolsResult:
    """Six tools in their order."""
    tools = [
        types.Tool.model_validate(tool.published, by_name=False)
        for tool in published_contract().tools.values()
    ]
    return types.ListToolsResult(tools=tools, ttl_ms=TTL_MS, cache_scope="public")


@cache
def list_resources_result() -> types.ListResourcesResult:
    """The fixed resources."""
    resources = [
        types.Resource(
            uri=item.uri,
            name=item.name,
            title=item.title,
            description=item.description,
            mime_type=item.mime_type,
        )
        for item in FIXED
    ]
    return types.ListResourcesResult(resources=resources, ttl_ms=TTL_MS, cache_scope="public")


@cache
def list_templates_result() -> types.ListResourceTemplatesResult:
    """The templates."""
    listed = [
        types.ResourceTemplate(
            uri_template=item.uri,
            name=item.name,
            title=item.title,
            description=item.description,
            mime_type=item.mime_type,
        )
        for item in TEMPLATES
    ]
    return types.ListResourceTemplatesResult(
        resource_templates=listed, ttl_ms=TTL_MS, cache_scope="public"
    )


@cache
def list_prompts_result() -> types.ListPromptsResult:
    """The prompts."""
    listed = [
        types.Prompt(
            name=prompt.name,
            title=prompt.title,
            description=prompt.description,
            arguments=[
                types.PromptArgument(
                    name=argument.name, description=argument.description, required=argument.required
                )
                for argument in prompt.arguments
            ],
        )
        for prompt in PROMPTS.values()
    ]
    return types.ListPromptsResult(prompts=listed, ttl_ms=TTL_MS, cache_scope="public")


def prompt_result(prompt: Prompt, given: Mapping[str, str]) -> types.GetPromptResult:
    """One prompt rendered for these arguments.

    Raises: UnusableArguments.
    """
    content = types.TextContent(text=prompt.render(given))
    message = types.PromptMessage(role="user", content=content)
    return types.GetPromptResult(description=prompt.description, messages=[message])
