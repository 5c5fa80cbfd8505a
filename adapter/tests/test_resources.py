import json
from base64 import b64decode
from typing import Any

import pytest
from msgspec.structs import replace

from adapter.tests.asking import ask, call_over, origin
from adapter.tests.fake_rs import FakeRs
from adapter.tests.fake_wire import error_answer
from adapter.tests.seed import long_body, photo, world
from pdpp_mcp_server.calls import AdapterOptions
from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.text import NOTICE
from pdpp_mcp_server.handles import (
    HANDLE_CHARS,
    BlobRef,
    RecordRef,
    WindowRef,
    blob_uri,
    record_uri,
    window_uri,
)
from pdpp_mcp_server.resources import FIXED, TEMPLATES, Content, read_resource

pytestmark = pytest.mark.anyio
m8 = RecordRef("cin_a", "messages", "m8")


async def read(rs: FakeRs, uri: str) -> tuple[Content, ...]:
    return (await read_resource(call_over(rs, "resource"), uri)).contents


def as_json(content: Content) -> Any:
    return json.loads(content.text or "")


def test_three_resources_and_four_templates_are_listed() -> None:
    assert [item.uri for item in FIXED] == ["pdpp://schema", "pdpp://grant", "pdpp://types"]
    assert [item.name for item in TEMPLATES] == ["stream", "record", "field-window", "blob"]


async def test_schema_and_stream_equal_the_tool() -> None:
    rs = world()
    index = await ask(rs, "schema", {})
    assert as_json((await read(rs, "pdpp://schema"))[0]) == index.structured["data"]
    stream = await ask(rs, "schema", {"stream": "messages"})
    assert as_json((await read(rs, "pdpp://stream/messages"))[0]) == stream.structured["data"]


async def test_the_types_name_the_arguments_and_results_of_each_tool() -> None:
    rs = world()
    [types] = await read(rs, "pdpp://types")
    assert types.mime_type == "application/typescript"
    written = types.text or ""
    for tool in published_contract().tools.values():
        assert written.count(f"\n  {tool.name}: {{\n") >= 2
        assert all(f"\n    {name}" in written for name in tool.properties)
    assert rs.requests == []
    assert len(written) <= 20_000


async def test_the_grant_names_connections_and_how_to_end_it() -> None:
    rs = world()
    grant = as_json((await read(rs, "pdpp://grant"))[0])
    assert grant["bearer"]["token_kind"] == "client"
    assert [row["connection_id"] for row in grant["connections"]] == ["cin_a", "cin_b", "cin_c"]
    assert origin in grant["how_to_change"]


async def test_a_record_is_its_body_and_a_window_its_text() -> None:
    rs = world()
    record = (await read(rs, record_uri(m8)))[0]
    assert as_json(record)["data"]["body"] == long_body
    assert record.untrusted
    assert as_json((await read(rs, record_uri(m8)))[1]) == {"notice": NOTICE}
    text, header = await read(rs, window_uri(WindowRef(m8, "body", 100, 50)))
    assert text.text == long_body[100:150]
    assert text.mime_type == "text/plain"
    assert as_json(header)["window"]["start_chars"] == 100
    assert as_json(header)["notice"] == NOTICE
    assert as_json(header)["next_uri"] == text.next_uri
    assert text.previous_uri is not None


async def test_a_window_of_a_very_long_key_has_its_neighbours_too() -> None:
    rs = world()
    key = "k" * 900
    rs.sources[0].streams["messages"][key] = {"id": key, "body": long_body}
    uri = window_uri(WindowRef(RecordRef("cin_a", "messages", key), "body", 0, 700))
    parts: list[str] = []
    while uri:
        text, _ = await read(rs, uri)
        parts.append(text.text or "")
        uri = text.next_uri or ""
    assert "".join(parts) == long_body


async def test_a_window_of_a_changed_field_is_stale() -> None:
    uri = window_uri(WindowRef(m8, "body", 0, 50, "sha256:" + "0" * 64))
    with pytest.raises(ToolError) as refused:
        await read(world(), uri)
    assert refused.value.code == "stale_cursor"


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("pdpp://nothing", "not_found"),
        ("https://me.example/", "not_found"),
        ("pdpp://stream/", "invalid_id"),
        ("pdpp://stream/a/b", "invalid_id"),
        ("pdpp://stream/a?b", "invalid_id"),
        ("pdpp://stream/%2e%2e", "invalid_id"),
        ("pdpp://stream/%252e%252e", "invalid_id"),
        ("pdpp://stream/100%25", "not_found"),
        ("pdpp://stream/unknown", "not_found"),
        (f"pdpp://stream/{'s' * (HANDLE_CHARS + 1)}", "invalid_id"),
        ("pdpp://record/xyz", "invalid_id"),
        ("pdpp://blob/xyz", "invalid_id"),
    ],
)
async def test_uris_that_name_nothing_are_refused(uri: str, code: str) -> None:
    with pytest.raises(ToolError) as refused:
        await read(world(), uri)
    assert refused.value.code == code


async def test_a_record_over_a_mebibyte_is_left_to_rest() -> None:
    rs = world()
    rs.sources[0].streams["messages"]["m8"]["body"] = "x" * 1_100_000
    with pytest.raises(ToolError) as refused:
        await read(rs, record_uri(m8))
    assert refused.value.code == "resource_too_large"
    assert refused.value.error["url"].startswith(f"{origin}/v1/streams/messages/records/m8")


async def test_a_file_over_the_cap_is_named_by_size_and_address_and_never_cut() -> None:
    rs = world()
    call = replace(call_over(rs, "resource"), settings=AdapterOptions(max_blob_bytes=100))
    uri = blob_uri(BlobRef("cin_a", "blob_1"))
    with pytest.raises(ToolError) as refused:
        await read_resource(call, uri)
    assert refused.value.code == "resource_too_large"
    assert refused.value.error["size_bytes"] == len(photo)
    assert refused.value.error["url"] == f"{origin}/v1/blobs/blob_1?connection_id=cin_a"
    assert rs.requests[0].headers["range"] == "bytes=0-99"
    whole = await read(rs, uri)
    assert (whole[0].mime_type, whole[0].untrusted) == ("image/png", True)
    assert b64decode(whole[0].blob or "") == photo


async def test_only_what_is_declared_may_be_trusted() -> None:
    rs = world()
    trusted = ("pdpp://schema", "pdpp://grant", "pdpp://types", "pdpp://stream/messages")
    others = (
        record_uri(m8),
        window_uri(WindowRef(m8, "body", 100, 50)),
        blob_uri(BlobRef("cin_a", "blob_1")),
    )
    for uri in trusted:
        assert not any(content.untrusted for content in await read(rs, uri))
    for uri in others:
        assert all(content.untrusted for content in await read(rs, uri))


@pytest.mark.parametrize(("status", "code"), [(403, "grant_revoked"), (404, "blob_not_found")])
async def test_a_refusal_of_the_server_keeps_its_code(status: int, code: str) -> None:
    rs = world()
    rs.script = lambda _: error_answer(status, code)
    for uri in (record_uri(m8), "pdpp://schema", blob_uri(BlobRef(None, "blob_1"))):
        with pytest.raises(ToolError) as refused:
            await read(rs, uri)
        assert refused.value.code == code
        assert refused.value.error["http_status"] == status
