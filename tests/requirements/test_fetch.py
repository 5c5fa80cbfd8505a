"""fetch and ids: one record as a document; ids in every form; refusals before any read."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, Request
from tests.requirements.doors import Door

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
both_tools: list[tuple[str, Json]] = [("fetch", {}), ("read_record_field", {"field_path": "body"})]


def script_record(door: Door, body: Json) -> None:
    def answer(request: Request) -> Answer | None:
        return Answer(200, body) if len(request.path) == 5 else None

    door.world.rs.script = answer


@pytest.mark.req("0.17")
async def test_a_document_has_five_members_in_both_faces(door: Door) -> None:
    found = await door.call("search", {"query": "lisbon"})
    shown = found.structured["results"][0]["id"]
    result = await door.call("fetch", {"id": shown})
    assert set(result.structured) == {"id", "title", "text", "url", "metadata"}
    assert json.loads(result.text) == result.structured
    assert len(result.raw["content"]) == 1
    whole = json.dumps(result.raw)
    assert "provider_url" not in whole
    assert "request_id" not in whole
    metadata = result.structured["metadata"]
    assert metadata["stream"] == "messages"
    assert metadata["connection_id"] == "cin_a"
    assert metadata["connector_key"] == "gmail"


@pytest.mark.req("0.18")
async def test_a_projected_document_knows_nothing_of_other_fields(door: Door) -> None:
    planted = {
        name: f"planted-{name}"
        for name in (
            "title",
            "name",
            "summary",
            "url",
            "href",
            "text",
            "content",
            "body",
            "sent_at",
        )
    }
    row: Json = {
        "object": "record",
        "id": "k1",
        "record_id": "k1",
        "stream": "messages",
        "connection_id": "cin_a",
        "connector_key": "gmail",
        "data": {**planted, "subject": "asked for", "id": "k1"},
        "title": "planted-wrapper-title",
        "sent_at": "planted-wrapper-time",
        "url": "https://planted.example/wrapper",
    }
    script_record(door, row)
    result = await door.fresh("fetch", {"id": "cin_a/messages:k1", "fields": ["subject"]})
    assert door.requests[0].values("fields") == ["subject"]
    assert "planted" not in json.dumps(result.raw)
    assert result.structured["title"] == "asked for"
    metadata = result.structured["metadata"]
    identity = {"stream": "messages", "record_id": "k1", "connection_id": "cin_a"}
    assert {**metadata, **identity, "connector_key": "gmail"} == metadata


@pytest.mark.req("3.3")
@pytest.mark.req("4.52")
async def test_legacy_ids_let_the_server_decide(door: Door) -> None:
    for tool, arguments in both_tools:
        scoped = {**arguments, "id": "messages:m1", "connection_id": "cin_b"}
        result = await door.fresh(tool, scoped)
        assert not result.is_error
        assert len(door.requests) == 1
        assert door.requests[0].values("connection_id") == ["cin_b"]
        ambiguous = await door.fresh(tool, {**arguments, "id": "messages:m1"})
        assert door.requests[0].values("connection_id") == []
        assert ambiguous.error["code"] == "ambiguous_connection"
        assert ambiguous.error["http_status"] == 409
        assert ambiguous.error["retry_with"] == "connection_id"
        for row in ambiguous.error["available_connections"]:
            assert f"connection: {row['connection_id']} | " in ambiguous.text
        assert not (await door.call(tool, {**arguments, "id": "messages:m8"})).is_error


@pytest.mark.req("3.4")
@pytest.mark.req("4.53")
async def test_conflicting_connections_are_refused_here(door: Door) -> None:
    for tool, arguments in both_tools:
        asked = {**arguments, "id": "cin_a/messages:m1", "connection_id": "cin_b"}
        result = await door.fresh(tool, asked)
        assert door.requests == []
        assert result.error["code"] == "conflicting_connection_id"
        assert "cin_a" in result.error["message"]
        assert "cin_b" in result.error["message"]
        call = result.error["next_call"]
        assert call == {"tool": tool, "arguments": {**arguments, "id": "cin_a/messages:m1"}}
        assert not (await door.call(tool, call["arguments"])).is_error
        assert not (await door.call(tool, {**asked, "connection_id": "cin_a"})).is_error


def handle(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


record_parts = {"v": 1, "kind": "record", "connection_id": "cin_a", "stream": "s", "record_id": "r"}
bad_ids = [
    "a/",
    "/s:r",
    "a/s",
    "a/s:",
    "a/b/s:r",
    "a/s:../x",
    "../a/s:r",
    "a/..:r",
    "a/.:r",
    "./s:r",
    "a/s:.",
    "%2e%2e%2fa/s:r",
    "a/%2e%2e:r",
    "a/s:%2e%2e%2fx",
    "a/s:x%5cy",
    "a\\b/s:r",
    "a/s:x\\y",
    "a/s:x\ny",
    "a/s:\u202ex",
    "a/s:x\u0000y",
    "a:b/s:r",
    "nocolon",
    "pdpp://record/",
    "pdpp://record/!!!",
    "pdpp://record/" + "A" * 8_151,
    "pdpp://record/" + handle([1, 2]),
    "pdpp://record/" + handle({**record_parts, "extra": 1}),
    "pdpp://record/" + handle({**record_parts, "stream": "a/b"}),
    "pdpp://record/" + handle({**record_parts, "v": 2}),
    "pdpp://blob/" + handle({"v": 1, "kind": "blob", "connection_id": None, "blob_id": "b"}),
]


@pytest.mark.req("3.5")
@pytest.mark.req("4.54")
async def test_malformed_ids_are_refused_before_any_read(door: Door) -> None:
    for tool, arguments in both_tools:
        for wrong in bad_ids:
            result = await door.fresh(tool, {**arguments, "id": wrong})
            assert result.error["code"] in {"invalid_id", "invalid_arguments"}, wrong
            assert len(wrong) > 8_192 or result.error["code"] == "invalid_id", wrong
            assert result.error["param"] == "id"
            assert door.requests == []


@pytest.mark.req("4.19")
async def test_every_id_of_a_search_page_fetches(door: Door) -> None:
    found = await door.call("search", {"query": "invoice", "limit": 20})
    for row in found.structured["results"]:
        document = (await door.call("fetch", {"id": row["id"]})).structured
        for name in ("id", "title", "text", "url"):
            assert isinstance(document[name], str)
            assert document[name]
        assert isinstance(document["metadata"], dict)


@pytest.mark.req("4.39")
async def test_text_alone_confirms_the_record(door: Door) -> None:
    body: Json = {"object": "record", "id": "k1", "stream": "messages", "connection_id": "cin_a"}
    body |= {"connector_key": "gmail", "display_name": "Personal mail"}
    body["data"] = {"id": "k1", "subject": "Long", "body": "\U0001f6eb word " * 9_000}
    script_record(door, body)
    document = json.loads((await door.call("fetch", {"id": "cin_a/messages:k1"})).text)
    assert document["id"] == "cin_a/messages:k1"
    assert document["title"] == "Long"
    assert len(document["text"]) <= 24_000
    metadata = document["metadata"]
    assert metadata["truncated"] is True
    assert metadata["total_chars"] == len(body["data"]["body"])
    named = {"stream": "messages", "connection_id": "cin_a", "connector_key": "gmail"}
    assert {**metadata, **named, "display_name": "Personal mail"} == metadata
    read = metadata["content_ladder"][0]["read"]
    assert read["arguments"]["offset_chars"] == len(document["text"])


@pytest.mark.req("4.40")
async def test_the_wrapped_record_is_the_document(door: Door) -> None:
    body: Json = {"object": "record", "id": "k1", "record_id": "k1", "stream": "messages"}
    body |= {"connection_id": "cin_a", "body": "outer body", "url": "https://outer.example/"}
    body["data"] = {"title": "Inner", "body": "inner body", "url": "https://inner.example/x"}
    script_record(door, body)
    document = (await door.call("fetch", {"id": "cin_a/messages:k1"})).structured
    assert document["title"] == "Inner"
    assert document["text"] == "inner body"
    assert document["url"] == "https://inner.example/x"
    bare = {**body, "data": None}
    script_record(door, bare)
    document = (await door.call("fetch", {"id": "cin_a/messages:k1"})).structured
    assert document["text"] == "outer body"
