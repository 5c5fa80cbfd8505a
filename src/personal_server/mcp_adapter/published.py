"""The tool list as the SDK sends it: built once from the contract, returned as it stands."""

from functools import cache

import mcp_types as types

from personal_server.mcp_adapter.contract import ToolContract, contract


@cache
def list_tools_result() -> types.ListToolsResult:
    """Six tools in their order."""
    return types.ListToolsResult(
        tools=[_tool(tool) for tool in contract().tools.values()],
        ttl_ms=300_000,
        cache_scope="public",
    )


def _tool(tool: ToolContract) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations.model_validate(tool.annotations),
    )
