"""What is published: six tools, the same through every door."""

from __future__ import annotations

import json

import pytest

from tests.requirements.doors import Door, RpcError

pytestmark = pytest.mark.anyio
names = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]


@pytest.mark.req("0.3")
@pytest.mark.req("4.20")
async def test_exactly_six_tools_stand_in_their_order(door: Door) -> None:
    assert [tool["name"] for tool in await door.tools()] == names
    for retired, instead in (("list_streams", "schema"), ("fetch_blob", "pdpp://blob/")):
        with pytest.raises(RpcError) as refused:
            await door.call(retired, {})
        assert refused.value.code == -32602
        assert instead in refused.value.message
        assert all(name in refused.value.message for name in names)


@pytest.mark.req("0.7")
async def test_the_tool_list_keeps_its_budget(door: Door) -> None:
    tools = await door.tools()
    assert len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode()) <= 16_384
