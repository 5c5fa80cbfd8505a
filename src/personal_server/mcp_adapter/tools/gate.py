"""The expand gate: whether there is anything to expand, by the schema of this very moment.

Source: MCP adapter contract 10.2.2, 8.2. The schema that was read says which fields hold bytes; no
schema is read for that alone.
"""

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter.calls import Call
from personal_server.mcp_adapter.catalog import rows_of_stream
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.expansion import refuse_without_capability
from personal_server.mcp_adapter.flags import binary_fields
from personal_server.mcp_adapter.reading import read_catalog


async def pass_expand_gate(
    call: Call, asked: Mapping[str, Any], stream: str, connection_id: str | None
) -> frozenset[str]:
    """Let a call with `expand` or `expand_limit` pass unless the stream lists no relation.

    The fields that the stream declares as bytes, as far as a schema was read.

    Raises: ToolError invalid_expand. A schema that cannot be read lets the call pass.
    """
    if "expand" not in asked and "expand_limit" not in asked:
        return frozenset()
    scope = (("connection_id", connection_id),) if connection_id else ()
    catalog = await read_catalog(call, (("stream", stream), *scope))
    if catalog is None:
        return frozenset()
    rows = [row.row for row in rows_of_stream(catalog, stream, connection_id)]
    try:
        refuse_without_capability(rows, stream)
    except ToolError as error:
        rest = {name: value for name, value in asked.items() if not name.startswith("expand")}
        raise error.with_next(NextCall(call.tool, rest)) from None
    return frozenset(name for row in rows for name in binary_fields(row))
