"""Refusals keep the server's meaning; ambiguity is bounded; no other credential is tried."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, Request, Source, error_answer
from adapter.tests.reader import Text
from adapter.tests.seed import message, world
from tests.requirements.doors import Door

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
six: list[tuple[str, Json]] = [
    ("schema", {}),
    ("query_records", {"stream": "messages"}),
    ("aggregate", {"stream": "messages", "metric": "count"}),
    ("search", {"query": "x"}),
    ("fetch", {"id": "cin_a/messages:m1"}),
    ("read_record_field", {"id": "cin_a/messages:m1", "field_path": "body"}),
]


def always(answer: Answer) -> Any:
    def script(request: Request) -> Answer | None:
        return answer

    return script


@pytest.mark.req("0.5")
async def test_one_read_one_bearer_and_the_servers_own_code(door: Door) -> None:
    codes = [(401, "invalid_token"), (403, "field_not_granted"), (404, "not_found")]
    codes += [(409, "ambiguous_connection"), (500, "internal_error"), (429, "quota_exceeded")]
    for status, code in codes:
        door.world.rs.script = always(error_answer(status, code))
        for tool, arguments in six:
            result = await door.fresh(tool, arguments)
            assert result.error["code"] == code
            assert result.error["http_status"] == status
            assert result.error["origin"] == "resource_server"
            assert Text(result.text).head.startswith(f"error {code}: ")
            assert len(door.requests) == 1
            assert door.requests[0].method == "GET"
    for status in (502, 503, 504):
        door.world.rs.script = always(error_answer(status, "upstream"))
        result = await door.fresh("fetch", {"id": "cin_a/messages:m1"})
        assert len(door.requests) == 2
        assert len({request.bearer for request in door.requests}) == 1
        assert result.error["code"] == "upstream"
    door.world.rs.script = always(Answer(503, {"error": {"code": "busy"}}, (("retry-after", "9"),)))
    result = await door.fresh("fetch", {"id": "cin_a/messages:m1"})
    assert len(door.requests) == 1
    assert result.error["retry_after_seconds"] == 9


@pytest.mark.req("0.20")
async def test_forty_sources_are_ambiguous_at_once_and_bounded(door: Door) -> None:
    rs = world("mcp_package")
    rs.sources = [
        Source(f"cin_{n}", "gmail", f"grt_{n}", f"Mail {n}", {"messages": {"m1": message(1, "A")}})
        for n in range(40)
    ]
    door.world.rs = rs
    for only_one in (False, True):
        if only_one:
            for source in rs.sources[1:]:
                source.streams = {"others": {}}
        for tool, arguments in six[1:3]:
            result = await door.fresh(tool, arguments)
            error = result.error
            assert error["code"] == "ambiguous_connection"
            assert error["retry_with"] == "connection_id"
            listed = error["available_connections"]
            assert len(listed) == 12
            assert error["available_connection_count"] == 40
            assert error["available_connections_truncated"] is True
            assert "schema" in error["discovery_hint"]
            lines = Text(result.text).named("connection")
            assert len(lines) == 12
            for row, line in zip(listed, lines, strict=True):
                for name in ("grant_id", "connector_key", "connection_id"):
                    assert row[name] in line
            assert "connections: shown=12; total=40; omitted=28" in result.text
            following = {"tool": "schema", "arguments": {"stream": "messages"}}
            if only_one:
                following = {"tool": tool, "arguments": {**arguments, "connection_id": "cin_0"}}
            assert error["next_call"] == following
            assert len(door.requests) == 1


@pytest.mark.req("4.8")
async def test_an_unusable_source_is_named_and_never_offered(door: Door) -> None:
    rs = world("mcp_package")
    gone = {
        "connection_id": "cin_b",
        "connector_key": "gmail",
        "grant_id": "grt_2",
        "display_name": "Work mail",
        "reason": "grant_revoked",
        "next_step": "reapprove",
    }
    rs.sources = [source for source in rs.sources if source.connection_id != "cin_b"]
    rs.unavailable = [gone]
    door.world.rs = rs
    index = await door.call("schema", {})
    assert "unavailable: cin_b | gmail | Work mail | grant_revoked | approve again" in index.text
    assert index.structured["data"]["unavailable_connections"] == [gone]
    assert "cin_b" not in json.dumps(index.structured["data"]["connectors"])
    ambiguous = await door.call("query_records", {"stream": "messages"})
    offered = [row["connection_id"] for row in ambiguous.error["available_connections"]]
    assert "cin_b" not in offered
    assert "unavailable: cin_b" in ambiguous.text
    asked = {"stream": "messages", "connection_id": "cin_b"}
    read = await door.call("query_records", asked)
    assert read.error["code"] == "connection_not_found"
    assert read.error["unavailable_connections"] == [gone]
    assert "approve" in read.error["message"]
    assert not (await door.call("query_records", {**asked, "connection_id": "cin_a"})).is_error
