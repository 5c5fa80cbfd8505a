"""The content ladder: whatever is cut can be continued, and nothing continues outside the grant."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, Request
from adapter.tests.reader import Text
from adapter.tests.seed import binary_needle, long_body, photo, world
from pdpp_mcp_server.handles import (
    BlobRef,
    RecordRef,
    WindowRef,
    blob_uri,
    record_uri,
    window_uri,
)
from tests.requirements.doors import Door, RpcError, World, http_door, memory_door, settings_for

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
one_field = {"id": "cin_a/messages:m8", "field_path": "body"}
astral = "".join(f"{n} \U0001f6eb\u00e9\u4e2d\u0301 line\n" for n in range(16_000))


def with_large_body(door: Door, value: Any = astral) -> None:
    rs = world()
    rs.sources[0].streams["messages"]["m8"]["body"] = value
    door.world.rs = rs


@pytest.mark.req("2.1")
async def test_an_incomplete_excerpt_names_its_continuation(door: Door) -> None:
    result = await door.call("search", {"query": "paragraph 60"})
    face = Text(result.text)
    line = face.named("cut")[0]
    read = result.structured["results"][0]["content_ladder"][0]
    assert face.ids == ["cin_a/messages:m8"]
    assert line.startswith(f"cut: body 160/{len(long_body)} read_record_field ")
    assert face.calls("cut")[0].arguments == read["read"]["arguments"]
    assert read["uri"].startswith("pdpp://field-window/")
    assert "Paragraph 119" not in result.text + json.dumps(result.structured)
    following = await door.call("read_record_field", read["read"]["arguments"])
    assert "Paragraph 60" in following.text


@pytest.mark.req("2.2")
async def test_text_alone_walks_a_field_to_its_end_and_back(door: Door) -> None:
    with_large_body(door)
    by_id: Json = {"stream": "messages", "filter": {"id": "m8"}}
    starts: list[tuple[str, Json]] = [("search", {"query": "line"}), ("query_records", by_id)]
    for tool, arguments in starts:
        face = Text((await door.call(tool, arguments)).text)
        call = next(c for c in face.calls("cut") if c.arguments["id"] == one_field["id"])
        offset = call.arguments["offset_chars"]
        steps = [await door.call(call.tool, {**call.arguments, "limit_chars": 16_384})]
        while Text(steps[-1].text).calls():
            following = Text(steps[-1].text).calls()[0]
            steps.append(await door.call(following.tool, following.arguments))
        assert "".join(s.structured["window"]["text"] for s in steps) == astral[offset:]
        assert "".join(Text(s.text).window for s in steps) == astral[offset:]
        back = Text(steps[-1].text).calls("previous")[0]
        before = await door.call(back.tool, back.arguments)
        assert before.structured["window"]["text"] == steps[-2].structured["window"]["text"]
    document = json.loads((await door.call("fetch", {"id": one_field["id"]})).text)
    read = document["metadata"]["content_ladder"][0]["read"]
    rest = await door.call(read["tool"], read["arguments"])
    assert rest.structured["window"]["start_chars"] == len(document["text"])
    assert astral.startswith(document["text"] + rest.structured["window"]["text"])


@pytest.mark.req("2.3")
async def test_a_cursor_excludes_choosing_a_window(door: Door) -> None:
    cursor = (await door.call("read_record_field", one_field)).structured["window"]["next_cursor"]
    choices: list[Json] = [
        {"offset_chars": 1}, {"q": "x"}, {"before_chars": 1}, {"after_chars": 1}
    ]  # fmt: skip
    for choice in choices:
        result = await door.fresh("read_record_field", {**one_field, "cursor": cursor, **choice})
        assert result.error["code"] == "invalid_field_window_selector"
        assert "cursor" in result.error["message"]
        assert "excludes" in result.error["message"]
        assert door.requests == []
    for choice in ({"before_chars": 1}, {"after_chars": 1}, {"q": "x", "offset_chars": 1}):
        result = await door.fresh("read_record_field", {**one_field, **choice})
        assert result.error["code"] == "invalid_field_window_selector"
        assert door.requests == []
    neither: Json = {"field_path": "body"}
    parts = {"connection_id": "cin_a", "stream": "messages", "record_id": "m8"}
    for identity in (neither, {**one_field, "stream": "messages"}, {**neither, "record_id": "m8"}):
        result = await door.fresh("read_record_field", identity)
        assert result.error["code"] == "invalid_arguments"
        assert door.requests == []
    assert not (await door.call("read_record_field", {**neither, **parts})).is_error


@pytest.mark.req("2.5")
async def test_a_link_reads_the_window_it_stands_for(door: Door) -> None:
    result = await door.call("read_record_field", {**one_field, "limit_chars": 2_000})
    link = result.links[0]
    assert link["uri"] == result.structured["resource"]["uri"]
    assert link["annotations"]["audience"] == ["user"]
    texts: list[str] = []
    uri: str | None = link["uri"]
    while uri:
        contents = await door.read(uri)
        texts.append(contents[0]["text"])
        assert contents[0]["_meta"]["pdpp.dev/untrusted"] is True
        header = json.loads(contents[1]["text"])
        uri = header["next_uri"]
        assert contents[0]["_meta"].get("pdpp.dev/next_uri") == uri
    assert texts[0] == result.structured["window"]["text"]
    assert "".join(texts) == long_body
    small = await door.call("read_record_field", {"id": "cin_a/messages:m1", "field_path": "body"})
    assert small.links == []
    assert "resource" not in small.structured


@pytest.mark.req("2.5")
@pytest.mark.parametrize("kind", ["memory", "http-2025", "http-2026"])
async def test_links_follow_the_setting(kind: str) -> None:
    for rule, linked in (("never", False), ("always", True)):
        settings, behind = settings_for(rule), World()
        opened = memory_door(behind, settings)
        if kind != "memory":
            opened = http_door(kind, behind, settings)
        async with opened as door:
            small = {"id": "cin_a/messages:m1", "field_path": "body"}
            assert bool((await door.call("read_record_field", small)).links) is linked
            cut = await door.call("read_record_field", {**one_field, "limit_chars": 10})
            assert bool(cut.links) is linked
            assert ("resource" in cut.structured) is linked


def outside(request: Request) -> Answer | None:
    """What the server says of everything that the forged names point at."""
    if request.path[:2] == ("v1", "blobs"):
        return Answer(404, {"error": {"code": "blob_not_found", "message": "No such blob."}})
    return None


@pytest.mark.req("2.6")
async def test_forged_names_get_the_servers_own_refusal(door: Door) -> None:
    door.world.rs.script = outside
    hidden = [
        (RecordRef("cin_a", "secrets", "r1"), "grant_stream_not_allowed"),
        (RecordRef("cin_z", "messages", "m1"), "connection_not_found"),
        (RecordRef("cin_a", "messages", "other-owners"), "not_found"),
    ]
    for record, code in hidden:
        for uri in (record_uri(record), window_uri(WindowRef(record, "body", 0, 100))):
            with pytest.raises(RpcError) as refused:
                await door.read(uri)
            assert refused.value.data["error"]["code"] == code
            assert refused.value.data["uri"] == uri
        fetched = await door.call("fetch", {"id": record_uri(record)})
        assert fetched.error["code"] == code
        window = await door.call(
            "read_record_field", {"id": record_uri(record), "field_path": "body"}
        )
        assert window.error["code"] == code
    ungranted = window_uri(WindowRef(RecordRef("cin_a", "messages", "m1"), "salary", 0, 10))
    with pytest.raises(RpcError) as refused:
        await door.read(ungranted)
    assert refused.value.data["error"]["code"] == "unknown_field"
    with pytest.raises(RpcError) as refused:
        await door.read(blob_uri(BlobRef("cin_a", "blob_1")))
    assert refused.value.data["error"]["code"] == "blob_not_found"


@pytest.mark.req("2.7")
async def test_windows_come_from_the_window_route_only(door: Door) -> None:
    await door.fresh("read_record_field", {**one_field, "limit_chars": 50})
    assert door.paths == ["v1/streams/messages/records/m8/field-window"]
    for arguments in ({"field_path": "nope"}, {"field_path": "body", "q": "absent words"}):
        result = await door.fresh("read_record_field", {**one_field, **arguments})
        assert result.is_error
        assert door.paths == ["v1/streams/messages/records/m8/field-window"]
    for status in (404, 405):
        door.world.rs.script = always(Answer(status, None, content=b"<html>secret</html>"))
        result = await door.fresh("read_record_field", one_field)
        assert result.error["code"] == "field_window_unsupported"
        assert result.error["next_call"]["tool"] == "fetch"
        assert "secret" not in result.text
        assert door.paths == ["v1/streams/messages/records/m8/field-window"]


def always(answer: Answer) -> Any:
    def script(request: Request) -> Answer | None:
        return answer

    return script


@pytest.mark.req("2.8")
async def test_large_bodies_are_previews_with_a_way_on(door: Door) -> None:
    wide = [{"n": n, "words": "json text " * 3} for n in range(5_000)]
    for value in (astral, wide):
        with_large_body(door, value)
        asks: list[tuple[str, Json]] = [
            ("search", {"query": "invoice 8"}),
            ("query_records", {"stream": "messages", "filter": {"id": "m8"}}),
            ("fetch", {"id": one_field["id"]}),
        ]
        for tool, arguments in asks:
            result = await door.call(tool, arguments)
            assert not result.is_error
            limit = 45_000 if tool == "fetch" else 12_000
            assert len(result.text) <= limit
            written = json.dumps(result.structured, ensure_ascii=False, separators=(",", ":"))
            assert len(written) <= 45_000
            for entry in ladder_of(tool, result.structured):
                assert "read" in entry or "uri" in entry
                if "read" in entry:
                    call = entry["read"]
                    assert not (await door.call(call["tool"], call["arguments"])).is_error
                else:
                    contents = await door.read(entry["uri"])
                    assert json.loads(contents[0]["text"])["data"]["body"] == value


def ladder_of(tool: str, structured: Json) -> list[Json]:
    if tool == "search":
        return [e for row in structured["results"] for e in row.get("content_ladder", [])]
    if tool == "fetch":
        return structured["metadata"]["content_ladder"]
    return structured["content_ladder"]


@pytest.mark.req("2.9")
async def test_bytes_are_described_and_never_shown(door: Door) -> None:
    messages = door.world.rs.sources[0].streams["messages"]
    inline: str = messages["m9"]["photo"]
    messages["m9"] |= {"picture": f"data:image/png;base64,{inline}", "files": [{"raw": inline}]}
    messages["m9"]["note"] = binary_needle[:20]
    asks: list[tuple[str, Json]] = [
        ("query_records", {"stream": "messages", "filter": {"id": "m9"}}),
        ("fetch", {"id": "cin_a/messages:m9"}),
        ("query_records", {"stream": "messages", "filter": {"id": "m10"}}),
        ("fetch", {"id": "cin_a/messages:m10"}),
        ("search", {"query": binary_needle[:20].lower()}),
    ]
    for tool, arguments in asks:
        result = await door.call(tool, arguments)
        assert binary_needle not in result.text
        assert tool == "search" or binary_needle not in json.dumps(result.structured)
        binary = [e for e in ladder_of(tool, result.structured) if e["kind"] == "binary"]
        assert binary or tool == "search"
        for entry in binary:
            for name in ("mime_type", "size_bytes", "digest", "uri", "url"):
                assert entry[name]
            assert entry["uri"] in result.text
            contents = (await door.read(entry["uri"]))[0]
            if entry["uri"].startswith("pdpp://blob/"):
                assert b64decode(contents["blob"]) == photo
                assert contents["mimeType"] == "image/png"
            else:
                assert inline in contents["text"]


@pytest.mark.req("4.6")
async def test_blob_bytes_come_through_the_blob_route(door: Door) -> None:
    found = await door.call("query_records", {"stream": "messages", "filter": {"id": "m10"}})
    entry = next(e for e in found.structured["content_ladder"] if e["kind"] == "binary")
    door.requests.clear()
    contents = await door.read(entry["uri"])
    assert b64decode(contents[0]["blob"]) == photo
    assert door.paths == ["v1/blobs/blob_1"]
    assert door.requests[0].bearer.startswith("Bearer ")
    assert door.requests[0].values("connection_id") == ["cin_a"]
    with pytest.raises(RpcError) as refused:
        await door.read(blob_uri(BlobRef("cin_a", "blob_unknown")))
    assert refused.value.data["error"]["code"] == "blob_not_found"
    assert refused.value.data["error"]["http_status"] == 404
    door.world.rs.blobs["blob_1"] = ("image/png", b"x" * (5 * 1024 * 1024 + 1))
    with pytest.raises(RpcError) as refused:
        await door.read(entry["uri"])
    error = refused.value.data["error"]
    assert error["code"] == "resource_too_large"
    assert error["size_bytes"] == 5 * 1024 * 1024 + 1
    assert error["url"].endswith("/v1/blobs/blob_1?connection_id=cin_a")
