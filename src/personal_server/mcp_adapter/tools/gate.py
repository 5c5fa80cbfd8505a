"""The expand gate: whether there is anything to expand, by the schema of this very moment.

Source: MCP adapter contract 10.2.2.
"""

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.catalog import rows_of_stream
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.expansion import refuse_without_capability
from personal_server.mcp_adapter.reading import read_catalog


async def pass_expand_gate(
    call: Call, asked: Mapping[str, Any], stream: str, connection_id: str | None
) -> None:
    """Let a call with `expand` or `expand_limit` pass unless the stream lists no relation.

    Raises: ToolError invalid_expand. A schema that cannot be read lets the call pass.
    """
    if "expand" not in asked and "expand_limit" not in asked:
        return
    scope = (("connection_id", connection_id),) if connection_id else ()
    catalog = await read_catalog(call, (("stream", stream), *scope))
    if catalog is None:
        return
    rows = [row.row for row in rows_of_stream(catalog, stream, connection_id)]
    try:
        refuse_without_capability(rows, stream)
    except ToolError as error:
        rest = {name: value for name, value in asked.items() if not name.startswith("expand")}
        raise error.with_next(NextCall(call.tool, rest)) from None
