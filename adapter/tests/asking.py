"""Asking one tool directly, over the recording server or any other port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pdpp_kernel.result_size import RESULT_CHARS
from pdpp_mcp_server.calls import (
    AdapterOptions,
    LinkRule,
    Outcome,
    ToolCall,
    those_of_this_program,
)
from pdpp_mcp_server.contract import ResultBudget
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer
from pdpp_mcp_server.server_offer import personal_data
from pdpp_mcp_server.tool_runs import ClientRequest, draw_nonce, guarded

origin = "http://127.0.0.1:7662"


def call_over(rs: Any, tool: str, rule: LinkRule = "auto", *, openai: bool = False) -> ToolCall:
    client = RsClient(InnerApplication(rs), origin, FixedBearer("tok"), "0")
    settings = AdapterOptions(rule)
    return ToolCall(tool, client.port(tool, "req_1"), origin, draw_nonce, openai, settings)


async def ask(
    rs: Any,
    tool: str,
    arguments: Mapping[str, Any] | None,
    *,
    is_ours: bool = False,
    result_chars: int = RESULT_CHARS,
) -> Outcome:
    call = replace(call_over(rs, tool), budget=ResultBudget(result_chars))
    if is_ours:
        call = replace(call, server_capabilities=those_of_this_program)

    def open_port(name: str) -> Any:
        return call.port

    return await guarded(
        personal_data.tools[tool], call, arguments, ClientRequest(open_port, origin, "req_1")
    )
