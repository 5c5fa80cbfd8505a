"""The call that finds what repeats at every time, where a stream has the first time only.

Source: docs/contract/mcp-adapter.md 10.2.3, 10.3; resource-server.md 2.3 (`first_times_only`).
"""

from __future__ import annotations

from pdpp_mcp_server.arguments import Arguments, without
from pdpp_mcp_server.errors import NextCall
from pdpp_mcp_server.faces.text import server_warnings
from pdpp_mcp_server.rs_client.json_values import Json, as_list, as_object, as_text

_OF_A_PAGE = ("cursor", "fields", "view", "expand", "expand_limit", "sort")


def occurrence_calls(tool: str, arguments: Arguments, body: Json) -> list[NextCall]:
    """The same call of the stream that has each time."""
    for warning in server_warnings(body):
        detail = as_object(warning.get("detail"))
        stream, shown_in = as_text(detail.get("stream")), as_text(detail.get("shown_in"))
        if warning.get("code") == "first_times_only" and shown_in:
            kept = without(arguments, *_OF_A_PAGE) if tool != "aggregate" else arguments
            named = {"stream": shown_in}
            if tool == "search":
                asked = as_list(arguments.get("streams"))
                named = {"streams": [shown_in if each == stream else each for each in asked]}
            return [NextCall(tool, {**kept, **named}, "each time it takes place")]
    return []
