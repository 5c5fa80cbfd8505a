"""Asking one tool directly, over the recording server or any other port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from personal_server.mcp_adapter.calls import AdapterSettings, Call, LinkRule, Outcome
from personal_server.mcp_adapter.server import Caller, draw_nonce, guarded, personal_data
from personal_server.rs_client.http import RsClient, in_process_client
from personal_server.rs_client.port import FixedBearer

origin = "http://127.0.0.1:7662"


def call_over(rs: Any, tool: str, rule: LinkRule = "auto", *, openai: bool = False) -> Call:
    client = RsClient(in_process_client(rs), origin, FixedBearer("tok"), "0")
    settings = AdapterSettings(rule)
    return Call(tool, client.port(tool, "req_1"), origin, draw_nonce, openai, settings)


async def ask(rs: Any, tool: str, arguments: Mapping[str, Any] | None) -> Outcome:
    call = call_over(rs, tool)

    def open_port(name: str) -> Any:
        return call.port

    return await guarded(
        personal_data.tools[tool], call, arguments, Caller(open_port, origin, "req_1")
    )
