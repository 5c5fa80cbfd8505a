"""An ambiguous read asks the person through a hosted call, which comes back with the answer."""

from typing import Any

import pytest

from adapter.tests.test_questions import package, unsaid
from tests.requirements.doors import HttpWire, RpcError, World, eras, http_door

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
capabilities = "io.modelcontextprotocol/clientCapabilities"
asking: Json = {"name": "query_records", "arguments": unsaid}


async def request(door: Any, given: Json) -> Json:
    wire = door.wire
    assert isinstance(wire, HttpWire)
    wire.extra_meta = {capabilities: {"elicitation": {"form": {}}}}
    return await wire.request("tools/call", given)


async def test_a_hosted_call_comes_back_with_the_answer() -> None:
    rs = package()
    async with http_door("http-2026", World(rs), bearer="pdpp_at_package") as door:
        first = await request(door, asking)
        assert first["resultType"] == "input_required"
        [(name, question)] = first["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        field = question["params"]["requestedSchema"]["properties"]["connection_id"]
        assert [choice["const"] for choice in field["oneOf"]] == ["cin_b", "cin_a"]
        assert len(rs.requests) == 1
        accepted = {"action": "accept", "content": {"connection_id": "cin_b"}}
        second = await request(door, {**asking, "inputResponses": {name: accepted}})
        assert second["resultType"] == "complete"
        assert second["structuredContent"]["page"]["connection_id"] == "cin_b"
        assert [each.values("connection_id") for each in rs.requests] == [[], ["cin_b"]]
        declined = await request(door, {**asking, "inputResponses": {name: {"action": "decline"}}})
        assert declined["structuredContent"]["error"]["code"] == "ambiguous_connection"
        other = {"action": "accept", "content": {"connection_id": "cin_elsewhere"}}
        forged = await request(door, {**asking, "inputResponses": {name: other}})
        assert forged["structuredContent"]["error"]["code"] == "connection_not_found"


async def test_hosted_clients_without_a_way_back_are_refused() -> None:
    async with http_door("http-2025", World(package()), bearer="pdpp_at_package") as door:
        refused = await request(door, asking)
    assert refused["structuredContent"]["error"]["code"] == "ambiguous_connection"


async def test_who_takes_no_questions_gets_the_refusal() -> None:
    rs = package()
    async with http_door("http-2026", World(rs), bearer="pdpp_at_package") as door:
        refused = await door.wire.request("tools/call", asking)
        assert refused["structuredContent"]["error"]["code"] == "ambiguous_connection"
        assert eras["http-2026"] == "2026-07-28"
        with pytest.raises(RpcError):
            await request(door, {**asking, "inputResponses": {"connection_id": {"action": 1}}})
