"""query_records and aggregate: what is asked is what is sent, and what comes back can go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, FakeRs, Request
from adapter.tests.reader import Text, records_of
from adapter.tests.seed import declarations
from tests.requirements.doors import Door

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
record_route = "v1/streams/messages/records"
three_tools: list[tuple[str, Json]] = [
    ("query_records", {"stream": "messages"}),
    ("aggregate", {"stream": "messages", "metric": "count"}),
    ("search", {"query": "invoice", "streams": ["messages"]}),
]


@pytest.mark.req("0.14")
@pytest.mark.parametrize("cursor", [None, "c u r;s|or"])
@pytest.mark.parametrize("bookmark", [None, "djE6OTk"])
@pytest.mark.parametrize("count", [None, {"kind": "exact", "value": 7}, 7])
async def test_the_first_line_carries_cursor_bookmark_and_count(
    door: Door, cursor: str | None, bookmark: str | None, count: Any
) -> None:
    rs = door.world.rs

    def page(request: Request) -> Answer | None:
        body = rs.answer(request).body
        body.pop("next_cursor", None)
        body["has_more"] = cursor is not None
        if cursor:
            body["next_cursor"] = cursor
        if bookmark:
            body["next_changes_since"] = bookmark
        body["meta"] = {} if count is None else {"count": count, "count_accuracy": "exact"}
        return Answer(200, body)

    rs.script = page
    head = Text((await door.call("query_records", {"stream": "messages", "limit": 3})).text)
    assert head.fact("next_cursor") == cursor
    assert head.fact("next_changes_since") == bookmark
    assert head.fact("count") == (None if count is None else "exact:7")


@pytest.mark.req("0.14")
async def test_text_alone_pages_to_the_end_and_resumes_changes(door: Door) -> None:
    seen: list[str] = []
    arguments: Json = {"stream": "messages", "limit": 7, "changes_since": "beginning"}
    for _ in range(10):
        face = Text((await door.call("query_records", arguments)).text)
        seen += face.ids
        following = face.following("query_records", arguments)
        assert following is not None
        arguments = following.arguments
        if "cursor" not in arguments:
            break
    assert len(seen) == len(set(seen)) == 23
    assert arguments == {"stream": "messages", "limit": 7, "changes_since": "djE6OTk"}
    assert not (await door.call("query_records", arguments)).is_error


@pytest.mark.req("0.19")
async def test_a_projection_holds_the_asked_fields_and_the_key(door: Door) -> None:
    asked = {"stream": "messages", "fields": ["subject", "sent_at"], "limit": 3}
    result = await door.call("query_records", asked)
    envelope = {"object", "id", "record_id", "stream", "connection_id", "connector_key"}
    envelope |= {"display_name", "grant_id", "source", "emitted_at", "expanded", "data"}
    for row in records_of(result.structured):
        assert set(row["data"]) <= {"subject", "sent_at", "id"}
        assert set(row) <= envelope
    assert "Dear reader" not in result.text + json.dumps(result.structured)


forwarded: list[tuple[Json, tuple[str, str]]] = [
    ({"connection_id": "cin_a"}, ("connection_id", "cin_a")),
    ({"limit": 5}, ("limit", "5")),
    ({"cursor": "off-3"}, ("cursor", "off-3")),
    ({"fields": ["subject"]}, ("fields", "subject")),
    ({"view": "summary"}, ("view", "summary")),
    ({"filter": {"id": "m1"}}, ("filter[id]", "m1")),
    ({"sort": "-sent_at"}, ("sort", "-sent_at")),
    ({"order": "desc"}, ("order", "desc")),
    ({"count": "exact"}, ("count", "exact")),
    ({"expand": ["attachments"]}, ("expand", "attachments")),
    ({"changes_since": "beginning"}, ("changes_since", "beginning")),
]


wrong_arguments: list[Json] = [
    {"nonsense": 1},
    {"limit": 101},
    {"limit": "5"},
    {"limit": True},
    {"fields": []},
]


@pytest.mark.req("4.5")
async def test_every_argument_is_forwarded_once_and_nothing_else(door: Door) -> None:
    for arguments, pair in forwarded:
        await door.fresh("query_records", {"stream": "messages", **arguments})
        request = door.requests[-1]
        assert "/".join(request.path) == record_route
        assert request.query == (pair,)
    for wrong in wrong_arguments:
        result = await door.fresh("query_records", {"stream": "messages", **wrong})
        assert result.error["code"] == "invalid_arguments"
        assert result.error["param"] == next(iter(wrong))
        assert door.requests == []


@pytest.mark.req("4.25")
@pytest.mark.req("4.29")
async def test_exact_filters_are_bracket_parameters(door: Door) -> None:
    values: list[tuple[Any, str]] = [("U123", "U123"), ("", ""), (5, "5"), (5.0, "5"), (1.5, "1.5")]
    for tool, arguments in three_tools:
        for value, sent in [*values, (True, "true"), (False, "false")]:
            await door.fresh(tool, {**arguments, "filter": {"user_id": value}})
            request = door.requests[0]
            assert request.values("filter[user_id]") == [sent]
            assert "filter" not in request.names


@pytest.mark.req("4.26")
@pytest.mark.req("4.29")
async def test_range_filters_are_bracket_parameters(door: Door) -> None:
    for tool, arguments in three_tools:
        bounds = {"gte": "2026-01-01T00:00:00Z", "lt": "2026-02-01T00:00:00Z"}
        await door.fresh(tool, {**arguments, "filter": {"created_at": bounds}})
        request = door.requests[0]
        assert request.values("filter[created_at][gte]") == [bounds["gte"]]
        assert request.values("filter[created_at][lt]") == [bounds["lt"]]
        result = await door.fresh(tool, {**arguments, "filter": {"created_at": {"between": 1}}})
        assert result.error["code"] == "invalid_filter"
        assert door.requests == []


@pytest.mark.req("4.27")
@pytest.mark.req("4.29")
async def test_strings_are_no_filters(door: Door) -> None:
    for tool, arguments in three_tools:
        for text in ("filter[id]=m1", "amount>5", "invoice", "", '{"id":"m1"}', "[" * 500):
            result = await door.fresh(tool, {**arguments, "filter": text})
            assert result.error["code"] == "invalid_filter"
            assert result.error["param"] == "filter"
            assert result.error["expected"]
            assert result.error["example"]["filter"]
            for word in ("param: filter", "expected: ", "example: "):
                assert word in result.text
            assert door.requests == []
        advised = await door.call(tool, {**arguments, "filter": "filter[sent_at][gte]=2026-01-01"})
        call = advised.error["next_call"]
        assert call["arguments"]["filter"] == {"sent_at": {"gte": "2026-01-01"}}
        assert not (await door.call(call["tool"], call["arguments"])).is_error


bad_filters: list[Any] = [
    {},
    {"f": {}},
    {"f": None},
    {"f": [1]},
    {"f": {"gte": None}},
    {"f": {"gte": True}},
    {"filter[f]": 1},
    {"f]": 1},
    {"": 1},
    [],
    None,
    7,
]


@pytest.mark.req("4.28")
@pytest.mark.req("4.29")
async def test_empty_and_encoded_filters_are_refused(door: Door) -> None:
    for tool, arguments in three_tools:
        for wrong in bad_filters:
            result = await door.fresh(tool, {**arguments, "filter": wrong})
            assert result.error["code"] == "invalid_filter", wrong
            assert result.error["param"].startswith("filter")
            assert door.requests == []


expanding: list[tuple[str, Json]] = [
    ("query_records", {"stream": "messages", "filter": {"id": "m1"}}),
    ("fetch", {"id": "cin_a/messages:m1"}),
]


@pytest.mark.req("1.7")
@pytest.mark.req("4.30")
@pytest.mark.req("4.31")
async def test_a_listed_relation_is_expanded(door: Door) -> None:
    for tool, arguments in expanding:
        limits = {"expand": ["attachments"], "expand_limit": {"attachments": 1}}
        result = await door.fresh(tool, {**arguments, **limits})
        assert [p.split("/")[1] for p in door.paths] == ["schema", "streams"]
        request = door.requests[-1]
        assert request.values("expand") == ["attachments"]
        assert request.values("expand_limit[attachments]") == ["1"]
        assert "expand_limit" not in request.names
        body = door.world.rs.answer(request).body
        if tool == "query_records":
            assert result.structured["data"] == body
            assert "cin_a/attachments:at1" in result.text
        else:
            listed = result.structured["metadata"]["expanded"]["attachments"]["data"]
            assert [child["id"] for child in listed] == ["cin_a/attachments:at1"]
        alone = {**arguments, "expand_limit": {"attachments": 1}}
        await door.fresh(tool, alone)
        assert door.requests[-1].values("expand_limit[attachments]") == ["1"]
        assert door.requests[-1].values("expand") == []


@pytest.mark.req("1.8")
async def test_a_stream_without_relations_is_refused_before_the_read(door: Door) -> None:
    door.world.rs.declarations = {name: {**d, "expand": []} for name, d in declarations.items()}
    asks: list[Json] = [{"expand": ["attachments"]}, {"expand_limit": {"attachments": 2}}]
    for tool, arguments in expanding:
        for ask in asks:
            result = await door.fresh(tool, {**arguments, **ask})
            assert result.error["code"] == "invalid_expand"
            for words in ("messages", "GET /v1/schema", "expand_capabilities"):
                assert words in result.error["message"]
                assert words in result.text
            assert door.paths == ["v1/schema"]
    for broken in (Answer(500, {}), Answer(200, {"connectors": []}), Answer(200, ["odd"])):
        door.world.rs.script = schema_answer(broken)
        for tool, arguments in expanding:
            await door.fresh(tool, {**arguments, "expand": ["attachments"]})
            assert any(path.startswith(record_route) for path in door.paths)


def schema_answer(answer: Answer) -> Any:
    def script(request: Request) -> Answer | None:
        return answer if request.path == ("v1", "schema") else None

    return script


@pytest.mark.req("1.9")
async def test_the_gate_follows_the_schema_of_the_moment(door: Door) -> None:
    bare: dict[str, Json] = {name: {**d, "expand": []} for name, d in declarations.items()}
    for declared, refused in ((bare, True), (declarations, False), (bare, True)):
        door.world.rs.declarations = declared
        result = await door.fresh(
            "query_records", {"stream": "messages", "expand": ["attachments"]}
        )
        assert result.is_error is refused
        assert door.paths[0] == "v1/schema"


@pytest.mark.req("4.32")
async def test_malformed_expansion_makes_no_call_at_all(door: Door) -> None:
    wrong: list[Json] = [
        {"expand_limit": {}},
        {"expand_limit": {"attachments[x]": 1}},
        {"expand_limit": {"attachments": 0}},
        {"expand_limit": {"attachments": "3"}},
        {"expand": []},
        {"expand": ["a,b"]},
        {"expand": ["a[b]"]},
        {"expand": ["attachments"], "expand_limit": {"other": 1}},
        {"expand": ["attachments"], "expand_limit": {}},
    ]
    for tool, arguments in expanding:
        for ask in wrong:
            result = await door.fresh(tool, {**arguments, **ask})
            assert result.error["code"] == "invalid_expand", ask
            assert door.requests == []


@pytest.mark.req("4.33")
async def test_an_ungrouped_aggregate_states_its_number_at_once(door: Door) -> None:
    for metric, value in (
        ("sum", "609.0"),
        ("min", "1.5"),
        ("max", "42.0"),
        ("count_distinct", "28"),
    ):
        asked = {"stream": "transactions", "metric": metric, "field": "amount"}
        result = await door.call("aggregate", asked)
        head = Text(result.text).head
        assert head.startswith(f"aggregate: {metric}(amount) of transactions = {value}")
        assert len(result.text) < 400
        assert str(result.structured["data"]["value"]) == value
    counted = await door.call("aggregate", {"stream": "transactions", "metric": "count"})
    assert Text(counted.text).head == "aggregate: count of transactions = 28"


def groups_of(rs: FakeRs, count: int, metric: str, other: int) -> Any:
    def answer(request: Request) -> Answer | None:
        if request.path[-1] != "aggregate":
            return None
        limit = int((request.values("limit") or [str(count)])[0])
        groups = [{"key": f"{n} " + "long key " * 60, "count": n} for n in range(count)][:limit]
        if metric != "count":
            groups = [{**group, "value": 2.5} for group in groups]
        body: Json = {"object": "aggregation", "groups": groups, "limit": limit}
        body |= {"group_count": count, "other_count": other, "filtered_record_count": 9}
        return Answer(200, {**body, "other_value": 55.1} if metric == "sum" else body)

    return answer


@pytest.mark.req("4.34")
async def test_every_group_of_the_answer_stands_in_both_faces(door: Door) -> None:
    for metric in ("count", "sum"):
        door.world.rs.script = groups_of(door.world.rs, 100, metric, 0)
        asked: Json = {"stream": "transactions", "metric": metric, "group_by": "category"}
        asked |= {"limit": 100} if metric == "count" else {"limit": 100, "field": "amount"}
        result = await door.call("aggregate", asked)
        groups = result.structured["data"]["groups"]
        keys = [line for line in Text(result.text).fenced if line.startswith("key ")]
        assert "by category" in Text(result.text).head
        assert len(keys) == len(groups) > 0
        for line, group in zip(keys, groups, strict=True):
            assert f'key "{group["key"][:120]}…"' in line
            number = group["count"] if metric == "count" else group["value"]
            assert f" = {number}" in line
            assert metric == "count" or f"(records {group['count']})" in line
        assert len(result.text) <= 12_000
        assert len(json.dumps(result.structured)) <= 45_000
    short = {"stream": "transactions", "metric": "count", "group_by": "category", "limit": 3}
    door.world.rs.script = None
    body = await door.call("aggregate", short)
    assert [g["key"] for g in body.structured["data"]["groups"]] == [
        "category 0", "category 13", "category 12"
    ]  # fmt: skip


@pytest.mark.req("4.36")
async def test_other_count_stands_in_text_whenever_it_is_sent(door: Door) -> None:
    for metric, other in (("count", 7), ("sum", 7), ("count", 0)):
        door.world.rs.script = groups_of(door.world.rs, 5, metric, other)
        asked: Json = {"stream": "transactions", "metric": metric, "group_by": "category"}
        asked |= {} if metric == "count" else {"field": "amount"}
        result = await door.call("aggregate", {**asked, "limit": 5})
        face = Text(result.text)
        assert f"other_count={other}" in face.head
        assert face.fenced[-1].startswith(f"other_count = {other}")
        assert ("other_value = 55.1" in face.fenced[-1]) is (metric == "sum")
        following = face.calls()
        assert bool(following) is (other > 0)
        if other:
            assert following[0].arguments["limit"] == 100
