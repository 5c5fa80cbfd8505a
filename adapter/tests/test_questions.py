"""An ambiguous read asks the person once, and reads once with the answer."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Literal

import mcp_types as types
import pytest
from mcp.client import Client

from adapter.tests.fake_rs import FakeRs
from adapter.tests.seed import world
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.tool_runs import ClientRequest

pytestmark = pytest.mark.anyio
origin = "http://127.0.0.1:7662"
Json = dict[str, Any]
unsaid: Json = {"stream": "messages", "limit": 2}
chosen: Json = {**unsaid, "connection_id": "cin_b"}


def package() -> FakeRs:
    rs = world("mcp_package")
    rs.sources = rs.sources[::-1]
    return rs


@asynccontextmanager
async def person(rs: FakeRs, action: Any, content: Any) -> AsyncGenerator[tuple[Client, list[Any]]]:
    """A client over a connection with a way back, whose person answers so."""
    http = RsClient(InnerApplication(rs), origin, FixedBearer("tok"), "0")
    asked: list[Any] = []

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        del context
        asked.append(params)
        return types.ElicitResult(action=action, content=content)

    def callers(request: Any) -> ClientRequest:
        del request
        return ClientRequest(lambda tool: http.port(tool, "req_1"), origin, "req_1")

    server = build_server(
        callers,
        name="pdpp-mcp-server",
        version="0",
    )
    async with Client(server, mode="legacy", elicitation_callback=answer) as client:
        yield client, asked


async def test_a_person_is_asked_within_the_call() -> None:
    rs = package()
    async with person(rs, "accept", {"connection_id": "cin_b"}) as (client, asked):
        result = await client.call_tool("query_records", unsaid)
        again = await client.call_tool("query_records", chosen)
    assert not result.is_error
    assert result.structured_content is not None
    assert again.structured_content is not None
    assert result.structured_content["data"] == again.structured_content["data"]
    assert [request.values("connection_id") for request in rs.requests] == [
        [],
        ["cin_b"],
        ["cin_b"],
    ]
    [question] = asked
    assert question.message == "Several of your accounts could answer this. Which one is meant?"
    [choices] = [each["oneOf"] for each in question.requested_schema["properties"].values()]
    assert choices == [
        {"const": "cin_b", "title": "Work mail | gmail | cin_b"},
        {"const": "cin_a", "title": "Personal mail | gmail | cin_a"},
    ]


@pytest.mark.parametrize(
    ("action", "content"),
    [("decline", None), ("cancel", None), ("accept", {}), ("accept", {"connection_id": 7})],
)
async def test_no_answer_leaves_the_refusal(
    action: Literal["accept", "decline", "cancel"], content: Json | None
) -> None:
    rs = package()
    async with person(rs, action, content) as (client, asked):
        result = await client.call_tool("query_records", unsaid)
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["error"]["code"] == "ambiguous_connection"
    assert len(asked) == len(rs.requests) == 1


async def test_nobody_is_asked_where_a_ready_call_asks_the_same() -> None:
    rs = package()
    rs.sources = [*(s for s in rs.sources if s.connection_id != "cin_b")]
    assert len([s for s in rs.sources if "messages" in s.streams]) == 1
    async with person(rs, "accept", {"connection_id": "cin_a"}) as (client, asked):
        result = await client.call_tool("query_records", unsaid)
    assert result.is_error
    assert asked == []
