"""What heals a refusal of the resource server: the rows of the table, told in both faces."""

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, error_answer
from adapter.tests.legality import insist_on_legal
from adapter.tests.seed import world
from pdpp_mcp_server.read_refusals import (
    expectation,
    mended_time,
    next_call,
    span_of,
)

Json = dict[str, Any]
query: Json = {"stream": "messages", "limit": 5}
described: Json = {"tool": "schema", "arguments": {"stream": "messages"}}
of_source: Json = {
    "tool": "schema",
    "arguments": {"stream": "messages", "connection_id": "cin_a"},
}
index: Json = {"tool": "schema", "arguments": {}}
page_one: Json = {"tool": "query_records", "arguments": query}
rows: list[tuple[str, int, Json, Json, Json | None]] = [
    ("unknown_field", 400, {"param": "fields"}, query, described),
    ("invalid_sort", 400, {"param": "sort"}, {**query, "sort": "body"}, described),
    ("invalid_filter", 400, {"param": "filter[a]"}, {**query, "filter": {"a": "b"}}, described),
    (
        "invalid_filter",
        400,
        {"param": "filter[at]"},
        {**query, "filter": {"at": "2026-10-11", "from": "a"}},
        {
            "tool": "query_records",
            "arguments": {
                **query,
                "filter": {"at": {"gte": "2026-10-11", "lt": "2026-10-12"}, "from": "a"},
            },
        },
    ),
    ("unknown_field", 400, {}, {**query, "connection_id": "cin_a"}, of_source),
    ("invalid_request", 400, {"param": "view"}, {**query, "view": "x"}, described),
    ("invalid_request", 400, {"param": "sort"}, {**query, "sort": "a", "order": "asc"}, page_one),
    ("invalid_request", 400, {"param": "count"}, {**query, "count": "exact"}, page_one),
    ("invalid_cursor", 400, {"param": "cursor"}, {**query, "cursor": "c"}, page_one),
    (
        "invalid_cursor",
        400,
        {"param": "changes_since"},
        {**query, "changes_since": "c"},
        {"tool": "query_records", "arguments": {**query, "changes_since": "beginning"}},
    ),
    ("invalid_expand", 400, {}, {**query, "expand": ["a"], "expand_limit": {"a": 1}}, page_one),
    (
        "invalid_request",
        400,
        {"param": "limit"},
        {**query, "limit": 500},
        {"tool": "query_records", "arguments": {**query, "limit": 100}},
    ),
    ("connection_not_found", 404, {}, {**query, "connection_id": "cin_z"}, index),
    ("cursor_expired", 410, {"recovery": {"cursor": None}}, {**query, "cursor": "c"}, page_one),
    ("invalid_request", 400, {"recovery": {"limit": 5_000}}, query, None),
    ("field_not_granted", 403, {"recovery": {"fields": None}}, {**query, "fields": ["a"]}, None),
    ("insufficient_scope", 403, {}, query, None),
    ("grant_expired", 403, {}, query, None),
    ("not_found", 404, {}, query, None),
    ("not_found", 404, {}, {"id": "cin_a/messages:gone"}, of_source),
    ("not_found", 404, {}, {"id": "no id"}, index),
    ("not_found", 404, {}, {"stream": "messages", "record_id": "gone"}, described),
    ("quota_exceeded", 429, {}, query, None),
]


@pytest.mark.parametrize(("code", "status", "members", "asked", "wanted"), rows)
def test_each_refusal_has_its_own_way_on(
    code: str, status: int, members: Json, asked: Json, wanted: Json | None
) -> None:
    found = next_call("query_records", {"code": code, **members}, status, asked)
    assert (None if found is None else found.as_json()) == wanted
    if wanted is not None:
        insist_on_legal(wanted)


@pytest.mark.parametrize(
    ("id", "wanted"), [("cin_a/messages:m1", of_source), ("messages:m1", described)]
)
def test_the_stream_of_an_id_is_where_to_look(id: str, wanted: Json) -> None:
    found = next_call("fetch", {"code": "unknown_field"}, 400, {"id": id, "fields": ["x"]})
    assert found is not None
    assert found.as_json() == wanted


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("2026-10-11", "2026-10-11", "2026-10-12"),
        ("2026/2/28", "2026-02-28", "2026-03-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2024", "2024-01-01", "2025-01-01"),
    ],
)
def test_a_day_a_month_and_a_year_are_spans(text: str, first: str, after: str) -> None:
    span = span_of(text)
    assert span is not None
    assert tuple(map(str, span)) == (first, after)


@pytest.mark.parametrize("text", ["2026-02-30", "2026-13", "0000", "9999", "yesterday", ""])
def test_what_is_no_day_is_no_span(text: str) -> None:
    assert span_of(text) is None


def test_one_searched_stream_is_where_to_look_and_several_are_the_index() -> None:
    for streams, wanted in ((["messages"], described), (["a", "b"], index)):
        asked = {"query": "x", "streams": streams, "filter": {"a": 1}}
        found = next_call("search", {"code": "unknown_field"}, 400, asked)
        assert found is not None
        assert found.as_json() == wanted


def test_a_resource_has_no_call_of_its_own_to_repeat() -> None:
    assert next_call("resource", {"code": "x", "recovery": {"a": 1}}, 410, {}) is None


def test_what_is_expected_is_what_the_server_allows() -> None:
    assert expectation({"code": "x", "allowed_values": ["a", "b"]}) == "one of a, b"
    assert expectation({"code": "x", "suggestions": ["subject"]}) == "perhaps subject"
    many = expectation({"code": "x", "allowed_values": [f"f{n}" for n in range(40)]})
    assert many is not None
    assert many.endswith("f11 ...")
    assert (expectation({"code": "invalid_filter"}) or "").startswith("object: field -> ")
    assert expectation({"code": "not_found"}) is None


@pytest.mark.anyio
async def test_allowed_values_stand_in_both_faces() -> None:
    rs = world()
    error = {"code": "invalid_request", "message": "No.", "param": "group_by"}
    body = {"error": {**error, "allowed_values": ["from", "subject"]}}
    rs.script = lambda _: Answer(400, body)
    outcome = await ask(rs, "query_records", query)
    assert outcome.structured["error"]["expected"] == "one of from, subject"
    assert "\nexpected: one of from, subject\n" in outcome.text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "given", "mended"),
    [
        ("since", "2026/1/5", "2026-01-05"),
        ("until", "2026.01.05", "2026-01-05"),
        ("since", "2026-03", "2026-03-01"),
        ("since", "2026", "2026-01-01"),
        ("until", "2026-03", "2026-03-01"),
        ("since", "2026-01-05 09:00", "2026-01-05T09:00:00Z"),
        ("until", "2026-01-05T09:00:00", "2026-01-05T09:00:00Z"),
        ("until", "2026-01-05T09:00:00.5+0130", "2026-01-05T09:00:00.5+01:30"),
        ("since", "2026-13-05", None),
        ("since", "2026-01-05T29:00", None),
        ("since", "yesterday", None),
        ("since", "", None),
    ],
)
async def test_a_time_that_is_plainly_meant_is_mended(
    name: str, given: str, mended: str | None
) -> None:
    assert mended_time(given) == mended
    rs = world()
    rs.script = lambda _: error_answer(400, "invalid_request", param=name)
    asked = {"query": "rain", name: given or "x"}
    error = (await ask(rs, "search", asked, is_ours=True)).structured["error"]
    healed = {"tool": "search", "arguments": {**asked, name: mended}}
    assert error["next_call"] == (healed if mended else {"tool": "schema", "arguments": {}})


@pytest.mark.parametrize(
    ("times", "mended"),
    [
        ({"since": "2018-05", "until": "2018-06"}, {"since": "2018-05-01", "until": "2018-06-01"}),
        ({"since": "2018-05", "until": "2018-05"}, {"since": "2018-05-01", "until": "2018-06-01"}),
        ({"since": "2018-05-01", "until": "2018"}, {"since": "2018-05-01", "until": "2018-01-01"}),
    ],
)
@pytest.mark.parametrize("param", ["since", "until"])
def test_a_mended_call_mends_both_its_times(
    times: dict[str, str], mended: dict[str, str], param: str
) -> None:
    found = next_call("search", {"code": "invalid_request", "param": param}, 400, times)
    assert found is not None
    if times[param] == mended[param]:  # what is refused is no time that can be mended
        assert (found.tool, found.arguments) == ("schema", {})
    else:
        assert found.arguments == mended


@pytest.mark.parametrize(
    ("operator", "mended"),
    [
        ("gte", {"gte": "2015-01-01"}),
        ("gt", {"gte": "2016-01-01"}),
        ("lt", {"lt": "2015-01-01"}),
        ("lte", {"lt": "2016-01-01"}),
    ],
)
def test_a_bound_that_is_a_year_is_mended_to_its_side(
    operator: str, mended: dict[str, str]
) -> None:
    error = {"code": "invalid_filter", "param": "filter[sent_at]"}
    asked = {"stream": "messages", "filter": {"sent_at": {operator: "2015"}, "n": 1}}
    found = next_call("query_records", error, 400, asked)
    assert found is not None
    assert found.arguments["filter"] == {"sent_at": mended, "n": 1}


def test_a_bound_that_is_a_day_is_left_as_it_is() -> None:
    error = {"code": "invalid_filter", "param": "filter[n]"}
    asked = {"stream": "messages", "filter": {"n": {"gte": "2026-01-05", "in": [1]}}}
    found = next_call("query_records", error, 400, asked)
    assert found is not None
    assert found.tool == "schema"


@pytest.mark.parametrize(
    ("tool", "asked", "mended"),
    [
        ("query_records", {"fields": ["activity date", "id"]}, {"fields": ["Activity_Date", "id"]}),
        (
            "query_records",
            {"filter": {"DISTANCE": {"gte": 5}}},
            {"filter": {"Distance": {"gte": 5}}},
        ),
        ("query_records", {"sort": "-activity_date"}, {"sort": "-Activity_Date"}),
        ("query_records", {"fields": ["when"]}, None),
        ("query_records", {"fields": ["twin"]}, None),
        # one of both conditions would be lost, and the call be wider
        ("query_records", {"filter": {"distance": {"gte": 5}, "Distance": {"lte": 9}}}, None),
        (
            "aggregate",
            {"metric": "count", "group_by": "activity_date", "then_by": "connection_id"}
            | {"sort": "-value"},
            {"metric": "count", "group_by": "Activity_Date", "then_by": "connection_id"}
            | {"sort": "-value"},
        ),
    ],
)
def test_a_field_in_other_letters_is_asked_for_as_it_is_spelled(
    tool: str, asked: Json, mended: Json | None
) -> None:
    granted = ["id", "Activity_Date", "Distance", "Twin", "TWIN", "Value", "ConnectionID"]
    error = {"code": "unknown_field", "allowed_values": granted}
    found = next_call(tool, error, 400, {"stream": "activities", **asked})
    assert found is not None
    named = {"stream": "activities"}
    expected = (tool, {**named, **mended}) if mended else ("schema", named)
    assert (found.tool, found.arguments) == expected


def test_no_field_is_renamed_after_a_stream() -> None:
    error = {"code": "grant_stream_not_allowed", "allowed_values": ["contacts"]}
    asked: Json = {"stream": "mesages", "fields": ["Contacts"]}
    found = next_call("query_records", error, 403, asked)
    assert found is not None
    assert (found.tool, found.arguments) == ("schema", {})
