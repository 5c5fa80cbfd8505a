"""Which record a call means: an id in any form, and the argument that may scope it.

Source: MCP adapter contract 9.3. The adapter never invents a connection.
"""

from collections.abc import Callable, Mapping
from typing import Any

from personal_server.mcp_adapter.cleaning import quoted
from personal_server.mcp_adapter.errors import NextCall, ToolError
from personal_server.mcp_adapter.handles import RecordRef, parse_id

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
