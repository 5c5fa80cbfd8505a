"""A host that shows 10,000 characters of a result, from its beginning and its end, loses no way on.

What is cut is the middle; cursor, `next` and warnings survive in every long result of every tool.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import FakeRs
from adapter.tests.fake_wire import Answer, Request
from adapter.tests.seed import world
from pdpp_mcp_server.rs_client.json_values import compact

pytestmark = pytest.mark.anyio
HEAD = TAIL = 5_000
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
        "limit": 60,
    },
    "schema": {},
    "fetch": {"id": "cin_a/messages:m1"},
    "read_record_field": {"id": "cin_a/messages:m8", "field_path": "body", "limit_chars": 4_000},
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
            return Answer(200, {**page, "data": [_record(n) for n in range(45)]})
        case ("v1", "streams", _, "aggregate"):
            groups = [{"key": f"{n} {WORDS * 3}", "count": n} for n in range(60)]
            figures = {"groups": groups, "other_count": 7, "group_count": 90}
            return Answer(
                200, {"object": "aggregation", "metric": "count", **figures, "meta": META}
            )
        case ("v1", "streams", _, "records", _):
            record = _record(1)
            record["data"]["body"] = WORDS * 1_000
            return Answer(200, {**record, "meta": META})
        case ("v1", "schema"):
            rows = [
                {
                    "name": f"stream_{n}",
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


def _cut(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]} … {text[-TAIL:]}"


@pytest.mark.parametrize("tool", ASKED)
async def test_what_a_cut_leaves_leads_on(tool: str) -> None:
    rs: FakeRs = world()
    if tool != "read_record_field":
        rs.script = _long_answers
    found = await ask(rs, tool, ASKED[tool], is_ours=tool != "schema")
    assert not found.is_error, found.text
    structured, text = found.structured, found.text
    whole = json.loads(text) if tool == "fetch" else structured
    metadata: dict[str, Any] = whole.get("metadata", {})
    warnings = structured.get("warnings", metadata.get("warnings", []))
    following = structured.get("next", metadata.get("content_ladder", []))
    left, shown = _cut(compact(structured)), _cut(text)
    for warning in warnings:
        assert warning["message"] in left
        assert warning["message"] in shown
    for way_on in following:
        assert compact(way_on) in left
    if tool in ("search", "query_records"):
        assert warnings
        assert CURSOR in left
        assert CURSOR in shown
        assert len(compact(structured)) > HEAD + TAIL
    if tool in ("aggregate", "read_record_field"):
        assert any(line.startswith("next: ") for line in shown.split("\n"))
