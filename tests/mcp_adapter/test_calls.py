"""What a call asks of the resource server beyond what every one takes."""

import pytest

from personal_server.domain.read_capabilities import ReadCapability
from personal_server.mcp_adapter.calls import ToolCall, those_of_this_program
from personal_server.mcp_adapter.errors import ToolError
from personal_server.mcp_adapter.server import draw_nonce
from tests.mcp_adapter.asking import call_over, origin
from tests.mcp_adapter.seed import world

pytestmark = pytest.mark.anyio


async def test_what_the_server_does_not_name_is_refused_without_a_call() -> None:
    rs = world()
    with pytest.raises(ToolError) as refused:
        await call_over(rs, "search").require(
            ReadCapability.PAGE_SIZE, "filter.name", code="invalid_filter", stream="messages"
        )
    error = refused.value.error
    assert (error["code"], error["param"], rs.paths) == ("invalid_filter", "filter.name", [])
    assert error["next_call"] == {"tool": "schema", "arguments": {"stream": "messages"}}


async def test_what_the_server_names_is_sent() -> None:
    port = call_over(world(), "search").port
    call = ToolCall("search", port, origin, draw_nonce, server_capabilities=those_of_this_program)
    for capability in ReadCapability:
        await call.require(capability, "limit")
