"""What repeats, at every time: the call that a list or a figure of first times offers."""

from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer
from adapter.tests.seed import world

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
SPAN: Json = {"since": "2026-03-01", "until": "2026-03-02"}
STARTS: Json = {"filter": {"starts_at": {"gte": "2026-03-01"}}}


def told(**detail: Any) -> Json:
    warning = {"code": "first_times_only", "message": "First times.", "detail": detail}
    return {"meta": {"warnings": [warning]}}


@pytest.mark.parametrize(
    ("tool", "asked", "body", "kept"),
    [
        ("query_records", {**SPAN, "fields": ["title"], "sort": "title"}, {"data": []}, SPAN),
        (
            "aggregate",
            {"metric": "count", **STARTS},
            {"value": 1, "filtered_record_count": 1},
            {"metric": "count", **STARTS},
        ),
    ],
)
async def test_the_same_is_asked_of_the_stream_with_every_time(
    tool: str, asked: Json, body: Json, kept: Json
) -> None:
    rs = world()
    rs.script = lambda _: Answer(200, {**body, **told(stream="events", shown_in="agenda")})
    outcome = await ask(rs, tool, {"stream": "events", **asked}, is_ours=True)
    calls = [each["arguments"] for each in outcome.structured["next"]]
    assert {"stream": "agenda", **kept} in calls
    rs.script = lambda _: Answer(200, {**body, **told(stream="events")})
    outcome = await ask(rs, tool, {"stream": "events", **asked}, is_ours=True)
    assert outcome.structured["next"] == []


async def test_a_search_is_made_among_the_streams_with_every_time() -> None:
    rs = world()
    body: Json = {"data": [], "has_more": False, **told(stream="events", shown_in="agenda")}
    rs.script = lambda _: Answer(200, body)
    asked = {"query": "choir", "streams": ["notes", "events"], **SPAN}
    outcome = await ask(rs, "search", asked, is_ours=True)
    calls = [each["arguments"] for each in outcome.structured["next"]]
    assert {**asked, "streams": ["notes", "agenda"]} in calls
