"""search: merged hits that name their source, with ids that open the record."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, Request, Source
from adapter.tests.reader import Text, hits_of
from adapter.tests.seed import message, world
from pdpp_mcp_server.handles import RecordRef, parse_id
from tests.requirements.doors import Door, World, hosted, http_door, origin

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
odd_keys = [
    "with space",
    "comma,key",
    "br[ack]et",
    'quo"te',
    "x" * 300,
    "slash/key",
    "up/../down",
    "%2e%2e%2f",
    "line\nbreak",
    "\u202eright",
    "caf\u00e9 \U0001f600",
    " edge ",
]


def hits(count: int, **extra: Any) -> list[Json]:
    return [
        {
            "object": "search_result",
            "stream": "messages",
            "record_id": f"m{n}",
            "record_key": f"m{n}",
            "id": f"m{n}",
            "connection_id": "cin_a" if n % 2 else "cin_b",
            "connector_key": "gmail",
            "display_name": "Personal mail" if n % 2 else "Work mail",
            "emitted_at": "2026-07-01T08:00:00.000Z",
            "sent_at": f"2026-01-{n % 28 + 1:02d}T10:00:00Z",
            **extra,
        }
        for n in range(1, count + 1)
    ]


def script(door: Door, rows: list[Json], *, obey: bool = True, **members: Any) -> None:
    def answer(request: Request) -> Answer | None:
        if request.path[:2] != ("v1", "search"):
            return None
        start = int((request.values("cursor") or ["0"])[0])
        limit = int((request.values("limit") or ["25"])[0]) if obey else len(rows)
        page = rows[start : start + limit]
        more = start + limit < len(rows)
        body: Json = {"object": "list", "data": page, "has_more": more, "meta": {}, **members}
        return Answer(200, {**body, "next_cursor": str(start + limit)} if more else body)

    door.world.rs.script = answer


@pytest.mark.req("0.15")
async def test_the_limit_is_global_and_every_hit_names_its_source(door: Door) -> None:
    snippet = {"field": "body", "text": "a <mark>very " + "long word " * 60}
    script(door, hits(10, snippet=snippet))
    result = await door.call("search", {"query": "word", "limit": 5})
    rows = hits_of(result.structured)
    assert len(rows) == 5
    for row in rows:
        assert row["connection_id"] in {"cin_a", "cin_b"}
        assert row["connector_key"] == "gmail"
        assert row["stream"] == "messages"
        assert row["record_id"]
        assert row["display_name"].endswith("mail")
        assert row["sent_at"].startswith("2026-01-")
        assert "2026-01-" in row["title"]
        assert "very" not in row["title"]
    mix = {row["connection_id"]: row["count"] for row in result.structured["source_mix"]}
    assert mix == {"cin_a": 3, "cin_b": 2}
    assert 'source_mix: cin_a gmail "Personal mail" 3 | cin_b gmail "Work mail" 2' in result.text
    assert result.text.count("<mark>") == result.text.count("</mark>")
    script(door, hits(10), obey=False)
    cut = await door.call("search", {"query": "word", "limit": 5})
    assert len(cut.structured["results"]) == 5
    assert "page_cut" in [warning["code"] for warning in cut.structured["warnings"]]
    assert "next_cursor" not in cut.structured["data"]


@pytest.mark.req("0.16")
async def test_one_connection_is_searched_alone(door: Door) -> None:
    asked = {"query": "invoice", "connection_id": "cin_b", "limit": 4}
    result = await door.fresh("search", asked)
    assert door.paths == ["v1/search"]
    assert door.requests[0].values("connection_id") == ["cin_b"]
    assert {row["connection_id"] for row in hits_of(result.structured)} == {"cin_b"}
    assert len(result.structured["results"]) <= 4
    assert "cin_a" not in result.text


def odd_world(door: Door) -> None:
    rs = world()
    records = {key: {**message(n + 1, "Odd"), "id": key} for n, key in enumerate(odd_keys)}
    rs.sources = [
        Source("cin_a", "gmail", "grt_1", "Personal mail", {"messages": records}),
        Source("cin_b", "gmail", "grt_2", "Work mail", {"messages": dict(records)}),
    ]
    door.world.rs = rs


@pytest.mark.req("3.1")
@pytest.mark.req("4.50")
async def test_ids_are_whole_parse_back_and_open_their_record(door: Door) -> None:
    odd_world(door)
    result = await door.call("search", {"query": "invoice", "limit": 12})
    rows, ids = hits_of(result.structured), list(Text(result.text).ids)
    following = Text(result.text).following("search", {"query": "invoice", "limit": 12})
    while following:
        page = await door.call("search", following.arguments)
        rows += hits_of(page.structured)
        ids += Text(page.text).ids
        following = Text(page.text).following("search", following.arguments)
    assert len(rows) == 2 * len(odd_keys)
    assert ids == [row["id"] for row in rows]
    for row in rows:
        assert row["connection_id"] in {"cin_a", "cin_b"}
        place = RecordRef(row["connection_id"], row["stream"], row["record_id"])
        assert parse_id(row["id"]) == place
        opened = await door.fresh("fetch", {"id": row["id"]})
        assert opened.structured["metadata"]["record_id"] == row["record_id"]
        assert door.requests[0].path[-1] == row["record_id"]
        assert door.requests[0].values("connection_id") == [row["connection_id"]]


@pytest.mark.req("3.2")
@pytest.mark.req("4.51")
async def test_one_id_from_text_opens_the_record_on_several_sources(door: Door) -> None:
    door.world.rs = world("mcp_package")
    unscoped = await door.call("query_records", {"stream": "messages"})
    assert unscoped.error["code"] == "ambiguous_connection"
    found = await door.call("search", {"query": "invoice"})
    first = Text(found.text).first_id
    assert first is not None
    document = await door.fresh("fetch", {"id": first})
    assert document.structured["id"] == first
    assert len(door.requests) == 1
    assert door.requests[0].values("connection_id") == [first.split("/")[0]]


@pytest.mark.req("3.6")
@pytest.mark.req("4.37")
async def test_every_hit_is_a_block_with_its_handles(door: Door) -> None:
    unlabelled = [{**hit, "connection_id": None} for hit in hits(1)]
    script(door, [*hits(9), *unlabelled])
    result = await door.call("search", {"query": "word"})
    face = Text(result.text)
    assert face.ids == [row["id"] for row in result.structured["results"]]
    assert len(face.ids) == len(face.named("title")) == len(face.named("source")) == 10
    assert all('label="' in line for line in face.named("source"))
    assert all("connector_key=gmail" in line for line in face.named("source"))
    assert face.named("connection_id") == []
    assert 'use: fetch {"id":"<id as shown>"}' in result.text
    odd_world(door)
    odd = Text((await door.call("search", {"query": "invoice"})).text)
    for number, shown in enumerate(odd.ids, 1):
        start = odd.lines.index(f"[{number}] {shown}")
        block = odd.lines[start : start + 4]
        stated = any(line.startswith("connection_id: cin_") for line in block)
        assert stated is shown.startswith("pdpp://record/")


@pytest.mark.req("3.7")
@pytest.mark.req("4.38")
async def test_search_stays_bounded_and_its_cursor_continues(door: Door) -> None:
    huge = {"field": "body", "text": "<mark>word</mark> " + "\u4e2d" * 4_000}
    script(door, hits(250, snippet=huge))
    seen: list[str] = []
    arguments: Json = {"query": "word", "limit": 100}
    for _ in range(60):
        result = await door.call("search", arguments)
        assert len(result.text) <= 12_000
        written = json.dumps(result.structured, ensure_ascii=False, separators=(",", ":"))
        assert len(written) <= 20_000
        ids = [row["id"] for row in result.structured["results"]]
        assert Text(result.text).ids == ids
        seen += ids
        following = Text(result.text).following("search", arguments)
        if not following:
            break
        arguments = following.arguments
    assert seen == [f"{'cin_a' if n % 2 else 'cin_b'}/messages:m{n}" for n in range(1, 251)]
    door.world.rs.script = None
    lean = await door.fresh("search", {"query": "invoice", "limit": 5})
    assert lean.structured["data"] == door.world.rs.answer(door.requests[0]).body


@pytest.mark.req("4.18")
async def test_results_are_documents_with_titles_and_citations(door: Door) -> None:
    by_query = await door.call("search", {"query": "invoice", "limit": 8})
    by_alias = await door.call("search", {"q": "invoice", "limit": 8})
    ids = [row["id"] for row in by_query.structured["results"]]
    assert ids == [row["id"] for row in by_alias.structured["results"]]
    for row in by_query.structured["results"]:
        assert row["id"]
        assert row["title"]
        assert re.match(r"https?://", row["url"])


@pytest.mark.req("4.18")
@pytest.mark.parametrize("era", ["http-2025", "http-2026"])
async def test_openai_clients_get_the_results_object_as_text(era: str) -> None:
    behind = World()
    async with http_door(era, behind, bearer="pdpp_at_openai") as door:
        found = await door.call("search", {"query": "lisbon"})
        assert len(found.raw["content"]) == 1
        results = json.loads(found.text)["results"]
        assert [set(row) for row in results] == [{"id", "title", "url"}]
        plain = [{name: row[name] for name in ("id", "title", "url")} for row in
                 found.structured["results"]]  # fmt: skip
        assert results == plain
        page = await door.call("query_records", {"stream": "messages"})
        assert page.links == []
    assert hosted(behind).origins == (origin,)


@pytest.mark.req("4.41")
async def test_hits_of_every_source_are_attributed_whatever_the_envelope(door: Door) -> None:
    door.world.rs = world("mcp_package")
    asked: Json = {"query": "invoice", "limit": 30}
    rows: list[Json] = []
    for _ in range(9):
        result = await door.call("search", asked)
        rows += hits_of(result.structured)
        following = Text(result.text).following("search", asked)
        if following is None:
            break
        asked = following.arguments
    assert {row["connection_id"] for row in rows} == {"cin_a", "cin_b", "cin_c"}
    assert {row["connector_key"] for row in rows} == {"gmail", "chase"}
    page = hits(4)
    answers: list[Json] = [{"data": page}, {"data": {"results": page}}, {"data": {"data": page}}]
    told: list[list[Json]] = []
    for body in answers:
        door.world.rs.script = always(Answer(200, body))
        nested = (await door.call("search", {"query": "x"})).structured
        assert nested["data"] == body
        told.append(hits_of(nested))
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 4


def always(answer: Answer) -> Any:
    def script(request: Request) -> Answer | None:
        return answer

    return script


@pytest.mark.req("4.42")
@pytest.mark.req("4.43")
@pytest.mark.req("4.44")
async def test_stream_and_connection_scopes_are_passed_to_one_call(door: Door) -> None:
    door.world.rs = world("mcp_package")
    names = ["messages", "transactions"]
    both = await door.fresh("search", {"query": "invoice", "streams": names, "limit": 9})
    assert door.paths == ["v1/search"]
    assert door.requests[0].values("streams") == ["messages", "transactions"]
    assert {row["stream"] for row in hits_of(both.structured)} <= {"messages", "transactions"}
    one = await door.fresh("search", {"query": "invoice", "streams": ["transactions"]})
    assert {row["connection_id"] for row in hits_of(one.structured)} == {"cin_c"}
    assert door.paths == ["v1/search"]
    unknown = await door.fresh("search", {"query": "invoice", "connection_id": "cin_none"})
    assert unknown.error["code"] == "connection_not_found"
    assert unknown.error["http_status"] == 404
