"""Hostile records: never in a trusted place, never over budget, always continuable."""

from __future__ import annotations

import json
import random
from typing import Any

import anyio
import jsonschema_rs
import pytest

from personal_server.mcp_adapter.calls import AdapterSettings, Call, Outcome
from personal_server.mcp_adapter.cleaning import clean_json
from personal_server.mcp_adapter.contract import contract
from personal_server.mcp_adapter.offer import personal_data
from personal_server.mcp_adapter.server import Caller, draw_nonce, guarded
from personal_server.rs_client.normalize import has_more, rows_of
from personal_server.rs_client.port import (
    Path,
    Query,
    RsInvalidResponse,
    RsResponse,
    RsTimeout,
    RsUnreachable,
)
from tests.mcp_adapter.fake_rs import Answer, Request
from tests.mcp_adapter.legality import calls_in, insist_on_legal
from tests.requirements import hostile
from tests.requirements.doors import Door
from tests.requirements.hostile import marker
from tests.requirements.reader import Text

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
validators = {
    name: jsonschema_rs.validator_for(tool.output_schema) for name, tool in contract().tools.items()
}
trusted = ("id", "url", "stream", "record_id", "connection_id", "connector_key", "display_name")


def outside_payload(tool: str, structured: Json) -> Json:
    """The structured face without the places where record text may stand."""
    bare = json.loads(json.dumps(structured))
    if tool == "query_records":
        for row in bare["data"]["data"]:
            row.pop("data", None)
            row.pop("expanded", None)
    if tool == "search":
        for row in bare["data"]["data"]:
            for name in ("title", "snippet", "evidence_excerpts"):
                row.pop(name, None)
        for row in bare["results"]:
            row.pop("title")
            row.pop("url")
    if tool == "aggregate":
        for group in bare["data"]["groups"]:
            group.pop("key")
    if tool == "fetch":
        for name in ("title", "text", "url"):
            bare.pop(name)
        bare["metadata"].pop("fields", None)
        bare["metadata"].pop("expanded", None)
    return bare


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
            words = ("[", "{", "title: ", "source: ", "match ", "cut: ", "key ", "other_count")
            assert all(line.startswith(words) for line in face.fenced)
            assert not any(char in result.text for char in hostile.unseen)


def check_budget(tool: str, text: str, structured: Json) -> None:
    written = len(json.dumps(structured, ensure_ascii=False, separators=(",", ":")))
    aims = {"query_records": (12_000, 32_000), "search": (12_000, 32_000)}
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
class HostilePort:
    """Answers anything, or nothing."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    async def get(
        self, path: Path, query: Query = (), *, max_bytes: int | None = None
    ) -> RsResponse:
        draw = self.draw
        chance = draw.random()
        if chance < 0.02:
            raise draw.choice([RsTimeout, RsUnreachable, RsInvalidResponse])
        if chance < 0.08:
            codes = ["field_not_granted", "invalid_cursor", "ambiguous_connection", "x" * 900]
            error = {"code": draw.choice(codes), "message": draw.choice(["no", "long " * 5_000])}
            return RsResponse(draw.choice([400, 401, 403, 404, 409, 429, 500]), {"error": error})
        if chance < 0.12:
            odd: list[Any] = [None, [], "text", 7, {}, {"data": None}, {"data": [1, None]}]
            return RsResponse(draw.choice([200, 404, 500]), draw.choice(odd))
        return RsResponse(200, self.body(path), request_id="req_1")

    def body(self, path: Path) -> Any:
        draw = self.draw
        if path[:2] == ("v1", "search"):
            return hostile.page(draw, [hostile.hit(draw) for _ in range(draw.randrange(30))])
        if path[-1] == "records":
            return hostile.page(draw, [hostile.row(draw) for _ in range(draw.randrange(30))])
        if path[-1] == "aggregate":
            keys = [hostile.value(draw) for _ in range(draw.randrange(100))]
            return {"groups": [{"key": key, "count": 1, "value": 2} for key in keys]}
        if path[-1] == "field-window":
            text = draw.choice(hostile.texts)
            window = {"text": text, "start_chars": draw.choice([0, 9, None]), "has_more": True}
            return {"field": {"size_chars": draw.choice([None, 10**7])}, "window": window}
        if path == ("v1", "schema"):
            return self.schema()
        return hostile.row(draw)

    def schema(self) -> Json:
        draw = self.draw
        count = draw.choice([1, 5, 200])
        rows = [
            {
                "name": draw.choice(["messages", "threads", f"stream {n}"]),
                "field_capabilities": {
                    f"f{m}": draw.choice(["t=string,eq", {"granted": False}, 7])
                    for m in range(draw.choice([2, 40]) if count > 5 else 900)
                },
                "expand_capabilities": draw.choice([[], [{"name": "attachments"}], None]),
                "granted_connections": [{"connector_instance_id": f"cin_{n}"}],
            }
            for n in range(count)
        ]
        return {"detail": draw.choice(["compact", None]), "connectors": [{"streams": rows}]}


def arguments_for(draw: random.Random, tool: str) -> Any:
    """Arguments, mostly plausible."""
    odd: list[Any] = ["", "x" * 9_000, -1, 0, 1.5, None, True, [], {}, [""], {"a": []}, "\u202e"]
    ids = ["cin_a/messages:m1", "messages:m1", "a//b", "pdpp://record/x", "x"]
    pool: Json = {
        "id": draw.choice(ids),
        "stream": "messages",
        "metric": draw.choice(["count", "sum"]),
        "field": "amount",
        "group_by": "title",
        "query": "words",
        "field_path": "body",
        "limit": draw.choice([1, 5, 25, 100]),
        "connection_id": draw.choice(["cin_a", "cin_b"]),
        "filter": draw.choice([{"a": 1}, {"a": {"gte": 1}}, "a=1", {}]),
        "expand": draw.choice([["attachments"], []]),
        "cursor": "c1",
        "offset_chars": 3,
        "detail": draw.choice(["full", "compact"]),
        "fields": ["body"],
    }
    legal = contract().tools[tool]
    chosen = {name: pool[name] for name in legal.required if name in pool}
    for name in legal.properties:
        if draw.random() < 0.2:
            chosen[name] = pool.get(name, draw.choice(odd))
        if draw.random() < 0.03:
            chosen[name] = draw.choice(odd)
    if tool in {"fetch", "read_record_field"}:
        chosen.setdefault("id", draw.choice(ids))
    return chosen if draw.random() < 0.98 else None


def check_parity(tool: str, outcome: Outcome) -> None:
    """What one face names, the other names too, in the same order."""
    structured, face = outcome.structured, Text(outcome.text)
    if outcome.is_error:
        call = structured["error"].get("next_call")
        told = [{"tool": c.tool, "arguments": c.arguments} for c in face.calls()]
        assert told == cleaned([call] if call else [])
        return
    if tool in {"fetch", "read_record_field"}:
        return
    calls = [{"tool": c.tool, "arguments": c.arguments} for c in face.calls()]
    bare = [{"tool": c["tool"], "arguments": c["arguments"]} for c in structured["next"]]
    assert calls == cleaned(bare)
    codes = [line.split()[1] for line in face.named("warning")]
    own = [warning["code"] for warning in structured["warnings"]]
    assert codes[len(codes) - len(own) :] == own
    if tool == "query_records":
        assert face.ids == structured["record_ids"]
        assert len(face.ids) == len(rows_of(structured["data"]))
        shown = [entry["field_path"] for entry in structured["content_ladder"]]
        assert len(face.named("cut")) + len(face.named("binary")) == len(shown)
    if tool == "search":
        assert face.ids == [row["id"] for row in structured["results"]]
        assert len(face.ids) == len(rows_of(structured["data"]))
    if tool in {"query_records", "search"}:
        assert (face.fact("has_more") == "true") is (has_more(structured["data"]) is True)


def cleaned(value: Any) -> Any:
    return json.loads(clean_json(value))


async def one(draw: random.Random) -> tuple[str, Outcome]:
    tool = draw.choice(list(personal_data.tools))
    port = HostilePort(draw)
    settings = AdapterSettings(draw.choice(["auto", "always", "never"]))
    origin = "https://me.example"
    openai = tool != "search" and draw.random() < 0.2
    call = Call(tool, port, origin, draw_nonce, openai, settings)

    def open_port(name: str) -> HostilePort:
        return port

    caller = Caller(open_port, origin, "req_fuzz")
    return tool, await guarded(personal_data.tools[tool], call, arguments_for(draw, tool), caller)


async def generated(seed: int, count: int) -> None:
    draw = random.Random(seed)
    for _ in range(count):
        tool, outcome = await one(draw)
        validators[tool].validate(outcome.structured)
        check_parity(tool, outcome)
        for call in calls_in(outcome.structured):
            insist_on_legal(call)
        written = len(json.dumps(outcome.structured, ensure_ascii=False, separators=(",", ":")))
        limit = (
            12_000
            if tool in {"query_records", "search", "aggregate"} and not outcome.is_error
            else 45_000
        )
        assert len(outcome.text) <= (4_000 if outcome.is_error else limit)
        assert written <= (6_000 if outcome.is_error else 45_000)
        if outcome.is_error:
            assert outcome.structured["error"]["code"] != "internal_error", (tool, outcome.text)
            assert set(outcome.structured) == {"error"}
            assert outcome.text.startswith(f"error {outcome.structured['error']['code'][:40]}")


@pytest.mark.parametrize("seed", range(20))
async def test_generated_calls_have_typed_bounded_valid_equal_results(seed: int) -> None:
    await generated(seed, 100)


async def ten_thousand() -> None:
    """`python -m tests.requirements.test_hostile`: the long run."""
    for seed in range(100, 200):
        await generated(seed, 100)
    print("10,000 calls: 0 over the ceiling, 0 untyped errors, 0 invalid, 0 unequal")


if __name__ == "__main__":
    anyio.run(ten_thousand)
