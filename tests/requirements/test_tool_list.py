"""What is published: six tools, instructions, the same through every door."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from pdpp_kernel.operators import FURTHER_OPERATORS, RANGE_OPERATORS
from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.rs_client.json_values import is_list, is_object
from tests.requirements.doors import Door, RpcError

pytestmark = pytest.mark.anyio
names = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]
delivery_words = re.compile(r"webhook|signing|signature|delivery|subscription|event", re.IGNORECASE)


def members(value: Any) -> set[str]:
    if is_object(value):
        return set(value) | {name for child in value.values() for name in members(child)}
    if is_list(value):
        return {name for child in value for name in members(child)}
    return set()


def longest_shared(left: str, right: str) -> int:
    best = 0
    for start in range(len(left)):
        while left[start : start + best + 1] in right and start + best < len(left):
            best += 1
    return best


def footprint_problems(tools: list[dict[str, Any]], instructions: str | None) -> list[str]:
    """What is wrong with a list: too large, repeated prose, foreign tools, no instructions."""
    problems: list[str] = []
    if len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode()) > 16_384:
        problems.append("budget")
    if [tool["name"] for tool in tools] != names:
        problems.append("membership")
    texts = [tool["description"] for tool in tools]
    if any(longest_shared(a, b) >= 120 for a, b in combinations(texts, 2)):
        problems.append("repeated")
    if not instructions or len(instructions) > 2_000:
        problems.append("instructions")
    return problems


@pytest.mark.req("0.3")
@pytest.mark.req("4.20")
async def test_exactly_six_tools_stand_in_their_order(door: Door) -> None:
    assert [tool["name"] for tool in await door.tools()] == names
    for retired, instead in (
        ("list_streams", "schema"),
        ("fetch_blob", "pdpp://blob/"),
        ("create_event_subscription", "/v1/event-subscriptions"),
    ):
        with pytest.raises(RpcError) as refused:
            await door.call(retired, {})
        assert refused.value.code == -32602
        assert instead in refused.value.message
        assert all(name in refused.value.message for name in names)
    data = (await door.call("schema", {})).structured["data"]
    assert {"object", "connectors", "bearer"} <= set(data)
    page = (await door.call("query_records", {"stream": "messages"})).structured["data"]
    assert {"object", "data", "has_more", "meta", "links"} <= set(page)


@pytest.mark.req("0.2")
@pytest.mark.req("4.11")
async def test_the_list_is_the_published_one_through_every_door(door: Door) -> None:
    published = published_contract()
    for tool in await door.tools():
        own = published.tools[tool["name"]]
        assert tool["inputSchema"] == own.input_schema
        assert tool["outputSchema"] == own.output_schema
        assert tool["description"] == own.description
    assert door.greeting["instructions"] == published.instructions


@pytest.mark.req("0.4")
@pytest.mark.req("4.7")
async def test_connection_id_is_the_only_source_selector(door: Door) -> None:
    tools = await door.tools()
    for tool in tools[:5]:
        assert "connection_id" in tool["inputSchema"]["properties"]
        assert "connection_id" not in tool["inputSchema"]["required"]
    described = [tool["inputSchema"]["properties"]["connection_id"] for tool in tools[:5]]
    assert all(prop["description"] for prop in described)
    listed = json.dumps(tools)
    assert "connector_instance_id" not in listed
    assert "http://" not in listed
    assert "https://" not in listed
    assert "registry" not in listed
    calls: list[tuple[str, dict[str, Any]]] = [
        ("schema", {}),
        ("query_records", {"stream": "messages"}),
        ("aggregate", {"stream": "messages", "metric": "count"}),
        ("search", {"query": "x"}),
        ("fetch", {"id": "cin_a/messages:m1"}),
    ]
    for tool, arguments in calls:
        result = await door.fresh(tool, {**arguments, "connector_instance_id": "cin_a"})
        assert result.error["code"] == "invalid_arguments"
        assert "connection_id" in result.error["message"]
        assert door.requests == []


@pytest.mark.req("0.7")
@pytest.mark.req("1.4")
async def test_the_footprint_is_measured_and_padding_is_noticed(door: Door) -> None:
    tools, instructions = await door.tools(), door.greeting["instructions"]
    assert footprint_problems(tools, instructions) == []
    assert footprint_problems(tools, None) == ["instructions"]
    extra = [*tools, {**tools[0], "name": "list_event_subscriptions"}]
    assert "membership" in footprint_problems(extra, instructions)
    padded = [{**tools[0], "description": "x" * 9_000}, *tools[1:]]
    assert "budget" in footprint_problems(padded, instructions)
    prose = "If it is ambiguous, do this and that. " * 6
    repeated = [{**t, "description": t["description"] + prose} for t in tools[:2]] + tools[2:]
    assert "repeated" in footprint_problems(repeated, instructions)


@pytest.mark.req("1.1")
async def test_instructions_stand_alone_in_their_first_512_characters(door: Door) -> None:
    instructions = door.greeting["instructions"]
    assert len(instructions) <= 2_000
    head = instructions[:512]
    for word in ("schema", "connection_id", "filter", "fields"):
        assert word in head
    assert "limit" in head or "cursor" in head
    assert instructions.index("Event subscriptions") > 512
    for sentence in instructions.split(". "):
        if "owner" in sentence or "control-plane" in sentence:
            assert "refused" in sentence


@pytest.mark.req("1.2")
async def test_descriptions_do_not_repeat_each_other(door: Door) -> None:
    tools = await door.tools()
    texts = [tool["description"] for tool in tools]
    assert all(longest_shared(a, b) < 120 for a, b in combinations(texts, 2))
    assert not delivery_words.search(json.dumps(tools))


@pytest.mark.req("1.3")
async def test_every_description_routes_a_reader(door: Door) -> None:
    for tool in await door.tools():
        text = tool["description"]
        assert "Read-only" in text
        assert "GET /v1/" in text
        assert "schema" in text or "server instructions" in text
        assert tool["annotations"]["readOnlyHint"] is True
        assert tool["annotations"]["destructiveHint"] is False


@pytest.mark.req("1.5")
async def test_nothing_claims_that_structure_is_hidden(door: Door) -> None:
    tools = await door.tools()
    texts = [json.dumps(tools), door.greeting["instructions"]]
    for tool, arguments in (
        ("schema", {}),
        ("query_records", {"stream": "messages"}),
        ("search", {"query": "invoice"}),
        ("aggregate", {"stream": "transactions", "metric": "count", "group_by": "category"}),
        ("read_record_field", {"id": "cin_a/messages:m8", "field_path": "body"}),
    ):
        texts.append((await door.call(tool, arguments)).text)
    assert not any(re.search(r"hidden|invisible|machine-only", text) for text in texts)
    described = {tool["name"]: tool["description"] for tool in tools}
    for name in ("query_records", "search"):
        assert "cursor" in described[name]
        assert "filter" in described[name]
        assert "aggregate" in described[name]


@pytest.mark.req("2.4")
async def test_field_reads_have_a_flat_input_and_a_closed_output(door: Door) -> None:
    tool = (await door.tools())[5]
    inputs = tool["inputSchema"]
    assert not {"oneOf", "anyOf", "allOf", "not"} & members(inputs)
    assert inputs["required"] == ["field_path"]
    properties = {"id", "connection_id", "stream", "record_id", "field_path", "cursor"}
    window = {"offset_chars", "limit_chars", "q", "before_chars", "after_chars"}
    assert set(inputs["properties"]) == properties | window
    record = {"id": "cin_a/messages:m8", "field_path": "body"}
    for arguments in (record, {**record, "offset_chars": 6_000}, {**record, "q": "Paragraph 7"}):
        structured = (await door.call("read_record_field", arguments)).structured
        assert set(structured) <= {"record", "field", "window", "resource"}
        assert {"record", "field", "window"} <= set(structured)


@pytest.mark.req("4.24")
async def test_filter_is_an_object_without_a_string_form(door: Door) -> None:
    for tool in (await door.tools())[1:4]:
        schema = tool["inputSchema"]["properties"]["filter"]
        assert schema["type"] == "object"
        assert not {"oneOf", "anyOf", "allOf"} & members(schema)
        values = schema["additionalProperties"]
        assert set(values["type"]) == {"string", "number", "boolean", "object"}
        assert set(values["properties"]) == {*RANGE_OPERATORS, *FURTHER_OPERATORS}


@pytest.mark.req("4.35")
async def test_the_aggregate_description_explains_other_count(door: Door) -> None:
    text = (await door.tools())[2]["description"]
    assert "other_count" in text
    assert "positive" in text
    assert "trunca" in text
