"""A host that shows 10,000 characters of a result loses no way on: cursor, `next`, warnings.

It cuts the middle, or shows the beginning alone. One that shows the end alone has them in the text
of every tool but `fetch`, whose text is JSON; structure is read from its beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from adapter.tests.asking import ask, call_over, origin
from adapter.tests.fake_rs import FakeRs
from adapter.tests.fake_wire import Answer, Request
from adapter.tests.seed import world
from pdpp_mcp_server.calls import Outcome
from pdpp_mcp_server.rs_client.json_values import Json, compact
from pdpp_mcp_server.server_offer import personal_data
from pdpp_mcp_server.tool_runs import ClientRequest, guarded

pytestmark = pytest.mark.anyio
SEEN = 10_000
CURSOR = "c" * 80
WARNINGS = [{"code": "limited_access", "message": "This access is limited to some time."}]
META = {"warnings": WARNINGS}
WORDS = "words that fill a page and say nothing of what comes next "
ASKED: dict[str, dict[str, Any]] = {
    "search": {"query": "words", "limit": 25},
    "query_records": {"stream": "messages", "connection_id": "cin_a", "limit": 100},
    "aggregate": {
        "stream": "messages",
        "connection_id": "cin_a",
        "metric": "count",
        "group_by": "subject",
        "limit": 78,
    },
    "schema": {},
    "fetch": {"id": "cin_a/messages:m1"},
    "read_record_field": {"id": "cin_a/messages:m8", "field_path": "body", "limit_chars": 10_000},
}


def _hit(number: int) -> dict[str, Any]:
    excerpt = {
        "field_path": "body",
        "preview_text": (WORDS * 4)[:200],
        "start_chars": number,
        "total_chars": 900,
    }
    identity = {"stream": "messages", "record_id": f"m{number}", "connection_id": "cin_a"}
    found = {"title": f"{number} {WORDS}", "evidence_excerpts": [excerpt]}
    return {"object": "search_result", "connector_key": "gmail", **identity, **found}


def _record(number: int) -> dict[str, Any]:
    key = f"m{number}"
    data = {"id": key, "subject": f"{number} {WORDS}", "body": f"{number} {WORDS * 2}"}
    return {
        "object": "record",
        "id": key,
        "stream": "messages",
        "connection_id": "cin_a",
        "connector_key": "gmail",
        "data": data,
    }


def _long_answers(request: Request) -> Answer | None:
    """More than 10,000 characters, with a cursor and a warning, of what a tool reads."""
    page = {"object": "list", "has_more": True, "next_cursor": CURSOR, "meta": META}
    match request.path:
        case ("v1", "search"):
            return Answer(200, {**page, "data": [_hit(n) for n in range(25)]})
        case ("v1", "streams", _, "records"):
            return Answer(200, {**page, "data": [_record(n) for n in range(52)]})
        case ("v1", "streams", _, "aggregate"):
            groups = [{"key": f"{n} {WORDS * 3}", "count": n} for n in range(78)]
            figures = {"groups": groups, "other_count": 7, "group_count": 90}
            return Answer(
                200, {"object": "aggregation", "metric": "count", **figures, "meta": META}
            )
        case ("v1", "streams", _, "records", _):
            record = _record(1)
            record["data"]["body"] = WORDS * 1_000
            return Answer(200, {**record, "meta": META})
        case (*_, "field-window"):
            window = {"start_chars": 0, "end_chars": 10_000, "limit_chars": 10_000}
            held = {"window": {**window, "text": (WORDS * 200)[:10_000]}}
            held |= {"field": {"path": "body", "text_like": True, "size_chars": 40_000}}
            return Answer(200, {"object": "field_window", **held})
        case ("v1", "schema"):
            rows = [
                {
                    "name": f"stream_{n}_{'x' * 110}",
                    "display_name": WORDS,
                    "visible": {"records": n, "collected_at": "2026-11-27T10:00:00Z"},
                }
                for n in range(90)
            ]
            held = [{"connection_id": "cin_a", "display_name": "Mail"}]
            connector = {"connector_key": "mail", "streams": rows, "granted_connections": held}
            return Answer(200, {"object": "schema", "connectors": [connector], "meta": META})
        case _:
            return None


CUTS: dict[str, Callable[[str], str]] = {
    "middle": lambda text: f"{text[: SEEN // 2]} … {text[-SEEN // 2 :]}",
    "end": lambda text: text[:SEEN],
    "beginning": lambda text: text[-SEEN:],
}


def _cut(text: str, what: str) -> str:
    return text if len(text) <= SEEN else CUTS[what](text)


async def _answered(tool: str) -> Outcome:
    rs: FakeRs = world()
    rs.script = _long_answers
    found = await ask(rs, tool, ASKED[tool], is_ours=tool != "schema")
    assert not found.is_error, found.text
    return found


def _ways_on(structured: Json) -> tuple[list[Json], list[Json]]:
    """The warnings, and the calls that lead on."""
    metadata: Json = structured.get("metadata", {})
    ladder = [entry["read"] for entry in metadata.get("content_ladder", []) if "read" in entry]
    more = [each["next"] for each in metadata.get("expanded", {}).values() if "next" in each]
    warnings = structured.get("warnings", metadata.get("warnings", []))
    return warnings, [*structured.get("next", []), *ladder, *more]


@pytest.mark.parametrize("what", ["middle", "end"])
@pytest.mark.parametrize("tool", ASKED)
async def test_what_a_cut_leaves_of_the_structure_leads_on(tool: str, what: str) -> None:
    found = await _answered(tool)
    warnings, following = _ways_on(found.structured)
    assert warnings or tool == "read_record_field"
    left = _cut(compact(found.structured), what)
    assert len(compact(found.structured)) > SEEN or tool == "aggregate"
    for each in (*warnings, *following):
        assert compact(each) in left
    if tool in ("search", "query_records"):
        assert CURSOR in left
    if tool == "read_record_field":
        assert found.structured["window"]["next_cursor"] in left


@pytest.mark.parametrize(
    ("tool", "what"),
    [(tool, what) for tool in ASKED for what in CUTS if (tool, what) != ("fetch", "beginning")],
)
async def test_what_a_cut_leaves_of_the_text_leads_on(tool: str, what: str) -> None:
    found = await _answered(tool)
    assert len(found.text) > SEEN
    warnings, following = _ways_on(found.structured)
    left = _cut(found.text, what)
    for warning in warnings:
        assert warning["message"] in left
    if tool == "fetch":
        assert all(compact(each) in left for each in following)
        return
    assert any(line.startswith(("next: ", "repeated: ")) for line in left.split("\n"))
    if tool in ("search", "query_records"):
        assert CURSOR in left
    for each in following:
        if each["arguments"].get("cursor") is None:
            assert f": {each['tool']} {compact(each['arguments'])}" in left


@pytest.mark.parametrize("count", range(10, 20))
async def test_a_cut_leaves_the_way_on_from_every_field_of_a_document(count: int) -> None:
    def many_long_fields(_: Request) -> Answer:
        record = _record(1)
        record["data"] |= {f"field_number_{n}": "w" * 400 for n in range(count)}
        record["data"]["body"] = WORDS * 1_000
        return Answer(200, {**record, "meta": META})

    rs: FakeRs = world()
    rs.script = many_long_fields
    found = await ask(rs, "fetch", ASKED["fetch"], is_ours=True)
    warnings, following = _ways_on(found.structured)
    assert warnings
    assert following
    for what in ("middle", "end"):
        left = _cut(found.text, what)
        assert all(compact(each) in left for each in (*warnings, *following))


async def test_what_a_cut_leaves_of_the_json_of_hits_leads_on() -> None:
    rs: FakeRs = world()
    rs.script = _long_answers
    port = call_over(rs, "search", openai=True)
    found = await guarded(
        personal_data.tools["search"],
        port,
        ASKED["search"],
        ClientRequest(lambda _: port.port, origin, "req_1"),
    )
    assert json.loads(found.text)["next_cursor"] == CURSOR
    assert found.text.index(CURSOR) < found.text.index('"results"')
