"""A host may cut a long result: cursor, next calls and warnings stand where it does not.

Some hosts keep the first ten thousand characters, some half of that at either end.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, Request
from adapter.tests.seed import world
from pdpp_mcp_server.rs_client.json_values import as_object

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
KEPT, HALF = 10_000, 5_000
WARNING = {"code": "limited_access", "message": "This access is limited."}
RECORD = {"id": "cin_a/messages:m0"}
PAGE: Json = {"stream": "messages", "connection_id": "cin_a", "limit": 40}
ASKED: dict[str, tuple[str, Json]] = {
    "schema": ("schema", {}),
    "full schema": ("schema", {"stream": "messages", "connection_id": "cin_a", "detail": "full"}),
    "page": ("query_records", PAGE),
    "wide page": ("query_records", {**PAGE, "fields": ["id", "body"], "sort": "sent_at"}),
    "feed": ("query_records", {**PAGE, "changes_since": "beginning"}),
    "groups": (
        "aggregate",
        {"stream": "messages", "connection_id": "cin_a", "metric": "count", "group_by": "body"},
    ),
    "hits": ("search", {"query": "flight", "limit": 40}),
    "document": ("fetch", RECORD),
    "window": ("read_record_field", {**RECORD, "field_path": "body", "limit_chars": 16_000}),
}


def large() -> FakeRs:
    """Forty long mails, and a warning in every answer."""
    rs = world()
    body = "Your flight to Lisbon leaves at seven in the morning, seat twelve. " * 400
    messages = rs.sources[0].streams["messages"]
    template = next(iter(messages.values()))
    for number in range(40):
        messages[f"m{number}"] = {**template, "id": f"m{number}", "body": f"{number} {body}"}

    def warned(request: Request) -> Answer | None:
        answer = rs.answer(request)
        answered = as_object(answer.body)
        if answer.status == 200 and "meta" in answered:
            meta = {**answered["meta"], "warnings": [WARNING]}
            return Answer(200, {**answered, "meta": meta})
        return answer

    rs.script = warned
    return rs


def leads(structured: Json) -> list[str]:
    """What a reader must not lose: codes of warnings, and the cursors."""
    warnings = structured.get("warnings") or structured.get("metadata", {}).get("warnings", [])
    data, window = structured.get("data", {}), structured.get("window", {})
    cursors = (data.get("next_cursor"), data.get("next_changes_since"), window.get("next_cursor"))
    return [each["code"] for each in warnings] + [each for each in cursors if each]


@pytest.mark.parametrize("case", ASKED)
async def test_a_cut_result_still_leads_on(case: str) -> None:
    tool, arguments = ASKED[case]
    outcome = await ask(large(), tool, arguments)
    structured: Json = outcome.structured
    whole = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    wanted = leads(structured)
    if tool not in ("schema", "aggregate"):
        assert max(len(whole), len(outcome.text)) > KEPT, "nothing is cut"
        assert wanted
    for face in (whole, outcome.text):
        for cut in (face[:KEPT], face[:HALF] + face[-HALF:] if len(face) > KEPT else face):
            assert [lead for lead in wanted if lead not in cut] == []
            if "next:" in face:
                assert "next:" in cut or any(f'cursor="{lead}"' in cut for lead in wanted)
    calls = [
        json.dumps(call["arguments"], ensure_ascii=False) for call in structured.get("next", [])
    ]
    assert [
        call for call in calls if call.replace(": ", ":").replace(", ", ",") not in whole[:HALF]
    ] == []
