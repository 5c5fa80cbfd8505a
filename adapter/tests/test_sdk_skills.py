"""The methods of the Skills extension, through a client of the SDK."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.shipped_skills import GET_METHOD, shipped_skills
from pdpp_mcp_server.tool_runs import ClientRequest

pytestmark = pytest.mark.anyio
_ANSWER: Any = TypeAdapter(dict[str, Any])


async def answered(uri: str) -> dict[str, Any] | int:
    """What is told of an address: the answer, or the code of the refusal."""

    def callers(request: object) -> ClientRequest:
        raise AssertionError(request)

    message = types.Request[Any, Any](method=GET_METHOD, params={"uri": uri})
    server = build_server(callers, name="tested", version="0")
    async with Client(server, mode="legacy", raise_exceptions=False) as client:
        try:
            return await client.session.send_request(message, _ANSWER)
        except MCPError as refused:
            return refused.error.code


async def test_a_skill_is_told_by_its_address() -> None:
    for skill in shipped_skills():
        told = await answered(skill.uri)
        assert isinstance(told, dict)
        assert told["skill"] == skill.entry


@pytest.mark.parametrize("uri", ["skill://another/SKILL.md", "pdpp://schema", ""])
async def test_what_is_no_skill_is_refused(uri: str) -> None:
    assert await answered(uri) == types.INVALID_PARAMS
