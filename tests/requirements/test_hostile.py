"""Hostile records: never in a trusted place, never over budget, always continuable."""

from __future__ import annotations

import json
import sys
from typing import Any

import anyio
import pytest

from adapter.tests.fake_rs import Answer, Request
from adapter.tests.reader import Text
from tests.requirements import hostile
from tests.requirements.checks import check_fence, outside_payload, validators
from tests.requirements.doors import Door
from tests.requirements.fuzzing import Session, Tally
from tests.requirements.hostile import marker

pytestmark = pytest.mark.anyio
Json = dict[str, Any]


@pytest.mark.req("1.6")
async def test_hostile_text_stays_inside_and_bounded(door: Door) -> None:
    for text in hostile.texts[:-1]:
        rows = [
            {
                "object": "record",
                "id": f"m{n}",
                "record_id": f"m{n}",
                "stream": "messages",
                "connection_id": "cin_a",
                "connector_key": "gmail",
                "emitted_at": "2026-01-01T00:00:00Z",
                "data": {"id": f"m{n}", "title": text, "body": text, "tags": [text] * 3},
            }
            for n in range(6)
        ]
        hits = [{**row, "title": text, "snippet": {"field": "body", "text": text}} for row in rows]
        for found in hits:
            del found["data"]
        groups = [{"key": text[:400], "count": n} for n in range(8)]
        door.world.rs.script = scripted(rows, hits, groups)
        asks: list[tuple[str, Json]] = [
            ("query_records", {"stream": "messages"}),
            ("search", {"query": "x"}),
            ("aggregate", {"stream": "messages", "metric": "count", "group_by": "title"}),
            ("fetch", {"id": "cin_a/messages:m0"}),
        ]
        for tool, arguments in asks:
            result = await door.call(tool, arguments)
            assert not result.is_error, (tool, text[:40], result.text[:200])
            validators[tool].validate(result.structured)
            assert marker not in json.dumps(outside_payload(tool, result.structured))
            assert marker not in json.dumps(result.meta)
            check_budget(tool, result.text, result.structured)
            if tool == "fetch":
                assert json.loads(result.text) == result.structured
                continue
            face = Text(result.text)
            assert face.fenced
            assert not any(marker in line for line in face.outside)
            check_fence(face)
            assert not any(char in result.text for char in hostile.unseen)


def check_budget(tool: str, text: str, structured: Json) -> None:
    written = len(json.dumps(structured, ensure_ascii=False, separators=(",", ":")))
    aims = {"query_records": (12_000, 20_000), "search": (12_000, 20_000)}
    text_limit, structured_limit = aims.get(tool, (45_000, 45_000))
    assert len(text) <= text_limit
    assert written <= structured_limit


def scripted(rows: list[Json], hits: list[Json], groups: list[Json]) -> Any:
    def answer(request: Request) -> Answer | None:
        limit = int((request.values("limit") or ["25"])[0])
        more: Json = (
            {"has_more": limit < 6, "next_cursor": "c"} if limit < 6 else {"has_more": False}
        )
        match request.path:
            case ("v1", "search"):
                return Answer(200, {"object": "list", "data": hits[:limit], **more})
            case ("v1", "streams", _, "records"):
                return Answer(200, {"object": "list", "data": rows[:limit], **more})
            case ("v1", "streams", _, "aggregate"):
                return Answer(200, {"groups": groups[:limit], "limit": limit, "other_count": 0})
            case ("v1", "streams", _, "records", key):
                return Answer(200, rows[int(key[1:])])
            case _:
                return None

    return answer


# generated calls ------------------------------------------------------------------------------
SEEDS, SHORT = 12, 4
"""How many sessions of a hundred calls there are, and are had by `make test`."""


@pytest.mark.parametrize(
    "seed",
    [pytest.param(n, marks=pytest.mark.long if n >= SHORT else ()) for n in range(SEEDS)],
)
async def test_generated_calls_have_typed_bounded_valid_equal_results(seed: int) -> None:
    tally = Tally()
    await Session(seed, tally).run(100)
    assert tally.calls == 100


async def long_run(sessions: int) -> None:
    """`python -m tests.requirements.test_hostile [sessions]`: a hundred calls each."""
    tally = Tally()
    for seed in range(1_000, 1_000 + sessions):
        await Session(seed, tally).run(100)
    print(tally.table())


if __name__ == "__main__":
    anyio.run(long_run, int(sys.argv[1]) if len(sys.argv) > 1 else 100)
