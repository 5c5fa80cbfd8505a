from collections.abc import Mapping
from typing import Any

import anyio
import jsonschema_rs
import pytest
from mcp.client import Client

from adapter.tests.fake_rs import FakeRs
from adapter.tests.seed import world
from pdpp_mcp_server.calls import Outcome, ToolCall
from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer, RsResponse
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.server_offer import personal_data
from pdpp_mcp_server.tool_runs import ClientRequest, draw_nonce, guarded

origin = "http://127.0.0.1:7662"
calls: list[tuple[str, Mapping[str, Any]]] = [
    ("schema", {}),
    ("schema", {"stream": "messages"}),
    ("schema", {"stream": "messages", "connection_id": "cin_a", "detail": "full"}),
    ("query_records", {"stream": "messages", "limit": 4, "count": "exact"}),
    ("query_records", {"stream": "messages", "expand": ["attachments"]}),
    ("aggregate", {"stream": "transactions", "metric": "sum", "field": "amount"}),
    ("aggregate", {"stream": "transactions", "metric": "count", "group_by": "category"}),
    ("search", {"query": "invoice"}),
    ("fetch", {"id": "cin_a/messages:m8"}),
    ("read_record_field", {"id": "cin_a/messages:m8", "field_path": "body"}),
]


async def ask(rs: FakeRs, tool: str, arguments: Mapping[str, Any] | None) -> Outcome:
    client = RsClient(InnerApplication(rs), origin, FixedBearer("tok"), "0")
    call = ToolCall(tool, client.port(tool, "req_1"), origin, draw_nonce)
    return await guarded(
        personal_data.tools[tool], call, arguments, ClientRequest(client.port, origin)
    )


@pytest.mark.anyio
@pytest.mark.parametrize(("tool", "arguments"), calls)
async def test_every_tool_answers_within_its_schema(
    tool: str, arguments: Mapping[str, Any]
) -> None:
    outcome = await ask(world(), tool, arguments)
    assert not outcome.is_error
    schema = published_contract().tools[tool].output_schema
    jsonschema_rs.validator_for(schema).validate(outcome.structured)


@pytest.mark.anyio
async def test_a_defect_is_a_typed_error_without_its_text() -> None:
    async def broken(call: ToolCall, arguments: Mapping[str, Any] | None) -> Outcome:
        raise RuntimeError("secret words")

    client = RsClient(InnerApplication(world()), origin, FixedBearer("tok"), "0")
    call = ToolCall("schema", client.port("schema"), origin, draw_nonce)
    outcome = await guarded(broken, call, {}, ClientRequest(client.port, origin, "req_7"))
    assert outcome.structured["error"]["code"] == "internal_error"
    assert outcome.structured["error"]["request_id"] == "req_7"
    assert "secret words" not in outcome.text


class Waiting:
    """A port that never answers, and notes what became of the read."""

    def __init__(self) -> None:
        self.begun, self.ended = anyio.Event(), anyio.Event()

    async def get(self, path: Any, query: Any = (), *, max_bytes: int | None = None) -> RsResponse:
        self.begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.ended.set()
        raise AssertionError


def behind(port: Waiting) -> ClientRequest:
    def open_port(tool: str) -> Waiting:
        return port

    return ClientRequest(open_port, origin, "req_1")


@pytest.mark.anyio
async def test_a_call_that_takes_too_long_is_a_timeout_and_never_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pdpp_mcp_server.contract.TOOL_SECONDS", 0.01)
    port = Waiting()
    call = ToolCall("search", port, origin, draw_nonce)
    outcome = await guarded(personal_data.tools["search"], call, {"query": "x"}, behind(port))
    assert outcome.structured["error"]["code"] == "rs_timeout"
    assert outcome.structured["error"]["next_call"]["arguments"] == {"query": "x"}
    assert port.ended.is_set()


@pytest.mark.anyio
async def test_cancelling_a_call_cancels_its_read() -> None:
    port = Waiting()

    def callers(request: Any) -> ClientRequest:
        return behind(port)

    server = build_server(callers, name="pdpp-mcp-server", version="0")
    async with Client(server, mode="legacy") as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "search", {"query": "x"})
        await port.begun.wait()
        tasks.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(10):
            await port.ended.wait()
