"""What a server offers: its lists, and what answers each name in them.

The machinery around an offer (ports, refusals, ceilings, results, log lines) is the same for any.
Source: MCP adapter contract 2.4, 10 to 12.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types

from personal_server.mcp_adapter import published
from personal_server.mcp_adapter.calls import Call, Outcome
from personal_server.mcp_adapter.prompts import prompts
from personal_server.mcp_adapter.resources import Resource, read_resource
from personal_server.mcp_adapter.results import call_result
from personal_server.mcp_adapter.tools.aggregate import aggregate
from personal_server.mcp_adapter.tools.fetch import fetch
from personal_server.mcp_adapter.tools.query_records import query_records
from personal_server.mcp_adapter.tools.read_record_field import read_record_field
from personal_server.mcp_adapter.tools.schema import schema
from personal_server.mcp_adapter.tools.search import search

ToolFunction = Callable[[Call, Mapping[str, Any] | None], Awaitable[Outcome]]
PromptFunction = Callable[[Mapping[str, str]], types.GetPromptResult]
ResourceReader = Callable[[Call, str], Awaitable[Resource]]
Rendering = Callable[[Call, Outcome], tuple[types.CallToolResult, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Offer:
    """Lists, and the functions behind them.

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


personal_data = Offer(
    list_tools=published.list_tools_result,
    list_resources=published.list_resources_result,
    list_templates=published.list_templates_result,
    list_prompts=published.list_prompts_result,
    tools={
        "schema": schema,
        "query_records": query_records,
        "aggregate": aggregate,
        "search": search,
        "fetch": fetch,
        "read_record_field": read_record_field,
    },
    prompts={name: partial(published.prompt_result, prompt) for name, prompt in prompts.items()},
    read_resource=read_resource,
)
"""The one offer of this adapter, the same for every client, token and transport."""
