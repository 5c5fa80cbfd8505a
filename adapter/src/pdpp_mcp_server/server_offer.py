"""What a server offers: its lists, and what answers each name in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

import mcp_types as types
import msgspec

from pdpp_mcp_server import sdk_results
from pdpp_mcp_server.calls import Outcome, ToolCall, ToolFunction
from pdpp_mcp_server.prompts import PROMPTS
from pdpp_mcp_server.resources import Resource, read_resource
from pdpp_mcp_server.sdk_results import call_result
from pdpp_mcp_server.tools.offered import OFFERED

PromptFunction = Callable[[Mapping[str, str]], types.GetPromptResult]
ResourceReader = Callable[[ToolCall, str], Awaitable[Resource]]
Rendering = Callable[[ToolCall, Outcome], tuple[types.CallToolResult, tuple[int, int]]]


class ServerOffer(msgspec.Struct, frozen=True):
    """What a server offers: its lists, and what answers each name in them.

    Shapes: a tool returns an outcome, which `render` makes a result with the sizes of its faces.
    Raises: a prompt raises UnusableArguments; a tool or reader ToolError.
    """

    list_tools: Callable[[], types.ListToolsResult]
    list_resources: Callable[[], types.ListResourcesResult]
    list_templates: Callable[[], types.ListResourceTemplatesResult]
    list_prompts: Callable[[], types.ListPromptsResult]
    tools: Mapping[str, ToolFunction]
    prompts: Mapping[str, PromptFunction]
    read_resource: ResourceReader
    render: Rendering = call_result


personal_data = ServerOffer(
    list_tools=sdk_results.list_tools_result,
    list_resources=sdk_results.list_resources_result,
    list_templates=sdk_results.list_templates_result,
    list_prompts=sdk_results.list_prompts_result,
    tools=OFFERED,
    prompts={name: partial(sdk_results.prompt_result, prompt) for name, prompt in PROMPTS.items()},
    read_resource=read_resource,
)
"""The one offer of this adapter, the same for every client, token and transport."""
