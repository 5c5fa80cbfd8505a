"""schema: an index for the whole grant, one stream ready for use, raw JSON Schema on demand."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, Request, Source
from adapter.tests.reader import Text
from adapter.tests.seed import bank, declarations, many, personal, work, world
from tests.requirements.doors import Door, RpcError

pytestmark = pytest.mark.anyio
Json = dict[str, Any]


def with_streams(door: Door, count: int) -> list[str]:
    rs = world()
    rs.sources = many(count, 4)
    names = [name for source in rs.sources for name in source.streams]
    rs.declarations = dict.fromkeys(names, declarations["messages"])
    door.world.rs = rs
    return names


@pytest.mark.req("0.8")
async def test_the_index_names_every_stream_and_stays_bounded(door: Door) -> None:
    for count, limit in ((80, 18_000), (24, 8_000)):
        names = with_streams(door, count)
        result = await door.call("schema", {})
        assert all(name in result.text for name in names)
        written = json.dumps(result.structured, ensure_ascii=False, separators=(",", ":"))
        assert len(written.encode()) < 60_000
        assert len(written) < 45_000
        assert len(result.text) < limit
        assert "field_capabilities" not in json.dumps(result.structured["data"])
        following = result.structured["next"][0]
        assert following["tool"] == "schema"
        assert following["arguments"]["stream"] in names
        assert "use: schema with one stream" in result.text


@pytest.mark.req("0.9")
async def test_a_shared_name_shows_every_row_that_has_it(door: Door) -> None:
    rs = world()
    third = Source("cin_d", "outlook", "grt_4", "Old mail", {"messages": {}})
    rs.sources = [personal(), work(), third]
    door.world.rs = rs
    result = await door.call("schema", {"stream": "messages"})
    sources = Text(result.text).named("source 1") + Text(result.text).named("source 2")
    assert len(sources) == 2
    for words in ("cin_a", "cin_b", "connector_key=gmail"):
        assert words in sources[0]
    for words in ("cin_d", "connector_key=outlook"):
        assert words in sources[1]
    assert len(Text(result.text).named("fields")) == 2
    assert len(Text(result.text).named("aggregations")) == 2
    field = re.search(r"(\w+)\[t=timestamp,eq,r=gte", result.text)
    group = re.search(r"group_by=(\w+)", result.text)
    assert field is not None
    assert group is not None
    query = {"stream": "messages", "connection_id": "cin_a", "filter": {field[1]: {"gte": "2026"}}}
    assert not (await door.call("query_records", query)).is_error
    counted = {"stream": "messages", "metric": "count", "group_by": group[1]}
    assert not (await door.call("aggregate", counted)).is_error


@pytest.mark.req("0.10")
@pytest.mark.parametrize("ignoring", [False, True])
async def test_one_connection_is_described_alone(door: Door, ignoring: bool) -> None:
    if ignoring:
        rs = door.world.rs

        def ignore(request: Request) -> Answer | None:
            kept = tuple(pair for pair in request.query if pair[0] != "connection_id")
            return rs.answer(Request(request.method, request.path, kept, request.headers))

        rs.script = ignore
    result = await door.call("schema", {"stream": "messages", "connection_id": "cin_a"})
    text = result.text
    facts = [
        "cin_a",
        "connector_key=gmail",
        "stream=messages",
        "Personal mail",
        "fields: id[",
        "projection: ",
        "sort: sent_at",
        "count: none, estimated, exact",
        "expand: attachments",
        "search: lexical",
        "aggregations: count",
    ]
    for fact in facts:
        assert fact in text
    both = text + json.dumps(result.structured)
    assert "cin_b" not in both
    assert "Work mail" not in both


@pytest.mark.req("0.11")
async def test_every_printed_flag_has_its_legend(door: Door) -> None:
    rs = world()
    odd = {**declarations["messages"]}
    odd["flags"] = {**odd["flags"], "x": "t=string,g=false", "y": "sem=unusable:mode_not_available"}
    odd["flags"] |= {"z": "declared", "f": "t=string,sparkle"}
    rs.declarations = {**declarations, "messages": odd}
    door.world.rs = rs
    result = await door.call("schema", {"stream": "messages"})
    legend = Text(result.text).named("legend")[0]
    structured = result.structured["data"]["field_capability_legend"]
    fields = Text(result.text).named("fields")[0]
    for flags in re.findall(r"\w+\[([^\]]+)\]", fields):
        for flag in flags.split(","):
            name, _, value = flag.partition("=")
            shown = {"g": "g=false"}.get(name, name)
            if value.startswith("unusable:"):
                shown = "NAME=unusable:WHY"
            assert shown in structured
            assert f"{shown}=" in legend


@pytest.mark.req("0.12")
async def test_full_detail_needs_a_stream(door: Door) -> None:
    result = await door.fresh("schema", {"detail": "full"})
    assert result.error["code"] == "invalid_request"
    assert result.error["param"] == "detail"
    for word in ("stream", "connection_id", "detail"):
        assert word in result.error["message"]
    assert result.error["next_call"] == {"tool": "schema", "arguments": {}}
    assert "next: schema {}" in result.text
    assert door.requests == []


@pytest.mark.req("0.13")
@pytest.mark.parametrize("foreign", [False, True])
async def test_full_detail_is_one_source_once(door: Door, foreign: bool) -> None:
    rs = door.world.rs
    if foreign:

        def answers_anyway(request: Request) -> Answer | None:
            if request.values("detail") != ["full"] or request.values("connection_id"):
                return None
            kept = tuple(pair for pair in request.query if pair[0] != "detail")
            return rs.answer(Request(request.method, request.path, kept, request.headers))

        rs.script = answers_anyway
    several = await door.call("schema", {"stream": "messages", "detail": "full"})
    assert several.error["code"] == "ambiguous_schema_detail"
    assert several.error["retry_with"] == "connection_id"
    listed = [row["connection_id"] for row in several.error["available_connections"]]
    assert {"cin_a", "cin_b"} <= set(listed)
    assert "properties" not in json.dumps(several.structured) + several.text
    one = {"stream": "messages", "connection_id": "cin_a", "detail": "full"}
    result = await door.call("schema", one)
    data = result.structured["data"]
    assert "data" not in data
    assert not ("streams" in data and "connectors" in data)
    rows = [row for item in data["connectors"] for row in item["streams"]]
    assert [row["name"] for row in rows] == ["messages"]
    assert rows[0]["schema"]["properties"] == declarations["messages"]["properties"]
    assert len(result.text) <= 45_000
    assert len(json.dumps(result.structured)) <= 45_000


@pytest.mark.req("4.4")
async def test_exactly_the_granted_streams_are_listed(door: Door) -> None:
    rs = world()
    rs.sources = [personal(), bank()]
    door.world.rs = rs
    result = await door.fresh("schema", {})
    assert [request.path for request in door.requests] == [("v1", "schema")]
    assert door.requests[0].bearer.startswith("Bearer ")
    for words in ("messages", "attachments", "transactions", "cin_a", "cin_c", "gmail", "chase"):
        assert words in result.text
        assert words in json.dumps(result.structured)
    assert "cin_b" not in result.text
    contents = await door.read("pdpp://stream/messages")
    scoped = await door.call("schema", {"stream": "messages"})
    assert json.loads(contents[0]["text"]) == scoped.structured["data"]
    with pytest.raises(RpcError):
        await door.read("pdpp://stream/secrets")


@pytest.mark.req("4.15")
async def test_the_compact_view_of_the_server_is_used_as_it_is(door: Door) -> None:
    scoped = await door.fresh("schema", {"stream": "messages"})
    request = door.requests[0]
    assert request.values("view") == ["compact"]
    assert request.values("stream") == ["messages"]
    body = door.world.rs.answer(request).body
    data = dict(scoped.structured["data"])
    assert data.pop("field_capability_legend")
    assert data == body
    index = await door.fresh("schema", {})
    assert door.requests[0].values("view") == ["compact"]
    body = door.world.rs.answer(door.requests[0]).body
    kept = {"name", "primary_key", "cursor_field", "consent_time_field", "granted_connections"}
    for connector in body["connectors"]:
        connector["streams"] = [
            {name: value for name, value in row.items() if name in kept}
            for row in connector["streams"]
        ]
    assert index.structured["data"] == body


@pytest.mark.req("4.16")
@pytest.mark.parametrize("status", [200, 400])
async def test_a_server_without_the_compact_view_is_projected_here(door: Door, status: int) -> None:
    wanted = {name: await door.call("schema", args) for name, args in scopes.items()}
    rs = door.world.rs

    def without_view(request: Request) -> Answer | None:
        if "view" not in request.names:
            return None
        if status == 400:
            return Answer(400, {"error": {"code": "invalid_request", "param": "view"}})
        kept = tuple(pair for pair in request.query if pair[0] != "view")
        return rs.answer(Request(request.method, request.path, kept, request.headers))

    rs.script = without_view
    for name, arguments in scopes.items():
        result = await door.fresh("schema", arguments)
        assert result.structured == wanted[name].structured
        assert result.text == wanted[name].text
        assert len(door.requests) == (2 if status == 400 else 1)


scopes: dict[str, Json] = {
    "index": {},
    "stream": {"stream": "messages"},
    "one": {"stream": "messages", "connection_id": "cin_a"},
}


@pytest.mark.req("4.17")
async def test_full_detail_is_never_the_compact_body(door: Door) -> None:
    one = {"stream": "messages", "connection_id": "cin_a", "detail": "full"}
    result = await door.fresh("schema", one)
    assert door.requests[0].values("detail") == ["full"]
    assert door.requests[0].values("view") == []
    data = result.structured["data"]
    assert data.get("detail") != "compact"
    row = data["connectors"][0]["streams"][0]
    assert row["schema"]["properties"] == declarations["messages"]["properties"]
