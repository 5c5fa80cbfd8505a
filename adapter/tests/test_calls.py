"""What a call asks of the resource server beyond what every one takes."""

from typing import Any

import pytest

from adapter.tests.asking import ask, call_over, origin
from adapter.tests.seed import world
from pdpp_kernel.read_capabilities import ReadCapability
from pdpp_mcp_server.calls import ToolCall, those_of_this_program
from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.tool_runs import draw_nonce

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


MESSAGES = {"stream": "messages", "connection_id": "cin_a"}
COUNT = {**MESSAGES, "metric": "count"}
SUM = {**COUNT, "metric": "sum", "field": "amount"}
OF_BEFORE: dict[str, tuple[dict[str, Any], ...]] = {
    "schema": ({"stream": "messages", "connection_id": "cin_a"}, {**MESSAGES, "detail": "full"}),
    "query_records": (
        {**MESSAGES, "limit": 3, "fields": ["id", "body"], "count": "exact"},
        {**MESSAGES, "view": "summary", "sort": "sent_at", "order": "asc"},
        {**MESSAGES, "filter": {"id": "m8"}, "cursor": "off-1"},
        {**MESSAGES, "filter": {"sent_at": {"gte": "2026", "lt": "2027"}}},
        {**MESSAGES, "expand": ["attachments"], "expand_limit": {"attachments": 2}},
        {**MESSAGES, "changes_since": "beginning"},
        {**MESSAGES, "changes_since": "djE6OTk"},
    ),
    "aggregate": (
        {**COUNT, "group_by": "subject", "limit": 5, "filter": {"id": "m8"}},
        {**SUM, "group_by_time": "sent_at", "granularity": "month", "time_zone": "Europe/Rome"},
    ),
    "search": (
        {"query": "invoice", "streams": ["messages"], "limit": 3, "connection_id": "cin_a"},
        {"q": "invoice", "streams": ["messages"], "filter": {"id": "m8"}, "cursor": "c"},
        {"query": "invoice", "mode": "semantic"},
    ),
    "fetch": (
        {"id": "messages:m10", "connection_id": "cin_a", "fields": ["blob_ref"], "as": "image"},
        {"id": "cin_a/messages:m8", "expand": ["attachments"], "expand_limit": {"attachments": 2}},
    ),
    "read_record_field": (
        {**MESSAGES, "record_id": "m8", "field_path": "body", "offset_chars": 1, "limit_chars": 9},
        {"id": "cin_a/messages:m8", "field_path": "body", "q": "P", "before_chars": 1},
        {"id": "cin_a/messages:m8", "field_path": "body", "q": "P", "after_chars": 1},
        {"id": "cin_a/messages:m8", "field_path": "body", "cursor": "c"},
    ),
}
"""Every argument that a resource server without further capabilities takes."""
NEW: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "query_records": (
        ("stream", {"limit": 3}),
        ("since", {**MESSAGES, "since": "2026-01-01"}),
        ("until", {**MESSAGES, "until": "2026-01-01"}),
        ("changes_since", {**MESSAGES, "changes_since": "now"}),
        ("filter", {**MESSAGES, "changes_since": "beginning", "filter": {"id": "m8"}}),
    ),
    "aggregate": (
        *(("metric", {**SUM, "metric": name}) for name in ("avg", "median", "p10", "p95")),
        ("then_by", {**COUNT, "group_by": "subject", "then_by": "id"}),
        ("bin", {**COUNT, "group_by": "amount", "bin": 5}),
        ("sort", {**COUNT, "group_by": "subject", "sort": "-key"}),
        ("query", {**COUNT, "query": "invoice"}),
        ("across", {"stream": "messages", "metric": "count", "across": "connections"}),
        (
            "group_by_time",
            {**COUNT, "group_by": "subject", "group_by_time": "sent_at", "granularity": "day"},
        ),
        ("granularity", {**COUNT, "group_by_time": "sent_at", "granularity": "weekday"}),
    ),
    "search": (
        ("since", {"query": "invoice", "since": "2026-01-01"}),
        ("until", {"query": "invoice", "until": "2026-01-01"}),
        ("sort", {"query": "invoice", "sort": "newest"}),
        ("exact", {"query": "invoice", "exact": True}),
    ),
}
"""What is refused without a call, and the argument that the refusal names."""
OPERATORS: tuple[dict[str, Any], ...] = (
    {"in": ["m8"]},
    {"ne": "m8"},
    {"contains": "m"},
    {"starts_with": "m"},
    {"exists": False},
)
FILTERED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("query_records", MESSAGES),
    ("aggregate", COUNT),
    ("search", {"query": "invoice", "streams": ["messages"]}),
)
SENT = {
    *("view", "stream", "detail", "connection_id", "limit", "cursor", "fields", "sort", "order"),
    *("count", "changes_since", "metric", "field", "group_by", "group_by_time", "granularity"),
    *("time_zone", "q", "streams", "expand", "expand_limit[attachments]", "filter[id]"),
    *("filter[sent_at][gte]", "filter[sent_at][lt]", "offset_chars", "limit_chars"),
    *("before_chars", "after_chars"),
}
"""Every parameter that such a server is ever sent."""


@pytest.mark.parametrize("tool", OF_BEFORE)
async def test_a_server_without_capabilities_is_sent_what_every_one_takes(tool: str) -> None:
    for arguments in OF_BEFORE[tool]:
        rs = world()
        outcome = await ask(rs, tool, arguments)
        unfit = {
            "unsupported_search_mode",
            "invalid_cursor",
            "not_found",
            "http_404",
            "field_not_found",
            "query_not_found",
        }
        assert not outcome.is_error or outcome.structured["error"]["code"] in unfit, outcome.text
        assert rs.requests or "cursor" in arguments
        for request in rs.requests:
            assert {name for name, _ in request.query} <= SENT
            assert request.path[:2] != ("v1", "timeline")


@pytest.mark.parametrize(
    ("tool", "param", "arguments"), [(tool, *case) for tool, cases in NEW.items() for case in cases]
)
async def test_what_such_a_server_lacks_is_refused_without_a_call(
    tool: str, param: str, arguments: dict[str, Any]
) -> None:
    rs = world()
    error = (await ask(rs, tool, arguments)).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_arguments", param)
    assert rs.requests == []


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize(("tool", "arguments"), FILTERED)
async def test_an_operator_that_such_a_server_lacks_is_refused_without_a_call(
    tool: str, arguments: dict[str, Any], operator: dict[str, Any]
) -> None:
    rs = world()
    asked = {**arguments, "filter": {"id": operator}}
    error = (await ask(rs, tool, asked)).structured["error"]
    assert (error["code"], error["param"]) == ("invalid_filter", "filter.id")
    assert rs.requests == []


def test_each_argument_of_each_tool_is_among_these() -> None:
    for tool in published_contract().tools.values():
        before = {name for arguments in OF_BEFORE[tool.name] for name in arguments}
        new = {name for _, arguments in NEW.get(tool.name, ()) for name in arguments}
        assert set(tool.properties) == before | new
    named = {operator for each in OPERATORS for operator in each}
    assert {f"filter_{name}" for name in named} == {
        word for word in ReadCapability if word.startswith("filter_")
    }
