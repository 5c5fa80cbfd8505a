"""Twelve journeys; each is finished by each of five hosts with what it alone shows."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from adapter.tests.fake_rs import Answer, Request
from adapter.tests.seed import declarations, photo, world
from tests.journeys.hosts import Host, large, limit_chars, walk
from tests.journeys.views import SmallWindow, View, views
from tests.requirements.doors import World, http_door, memory_door, settings_for

pytestmark = pytest.mark.anyio
Json = dict[str, Any]


@pytest.fixture(params=views, ids=lambda view: view.name)
async def host(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[Host]:
    async with memory_door(World(), settings_for("auto")) as door:
        yield Host(door, request.param)


async def test_schema_then_a_query_paged_to_its_end(host: Host) -> None:
    index = await host.call("schema", {})
    assert "messages" in index.streams()
    arguments: Json = {"stream": "messages", "limit": 9, "count": "exact"}
    ids = await host.all_ids(arguments, count="exact:23")
    assert len(ids) == len(set(ids)) == 23


async def test_search_then_fetch_by_one_id(host: Host) -> None:
    found = await host.call("search", {"query": "lisbon"})
    document = await host.call("fetch", {"id": found.ids()[0]})
    assert document.document["title"] == "Personal invoice 8 for garden tools"
    assert document.document["url"].startswith("http")
    assert document.ids() == found.ids()


async def test_a_hit_leads_to_the_whole_of_a_long_field(host: Host) -> None:
    host.world.rs.sources[0].streams["messages"]["m8"]["body"] = large
    found = await host.call("search", {"query": "8999"})
    call = found.cut()
    assert call is not None
    offset = call.arguments["offset_chars"]
    first = await host.call(call.tool, {**call.arguments, "limit_chars": limit_chars(host)})
    assert await walk(host, first) == large[offset:]


async def test_an_ambiguity_is_resolved_from_the_error(host: Host) -> None:
    host.world.rs = world("mcp_package")
    asked: Json = {"stream": "transactions", "limit": 3}
    refused = await host.call("query_records", asked)
    assert refused.error_code() == "ambiguous_connection"
    chosen = refused.connections()[0]
    page = await host.call("query_records", {**asked, "connection_id": chosen})
    assert page.error_code() is None
    assert page.ids()[0].startswith(f"{chosen}/")


async def test_expansion_with_and_without_capability(host: Host) -> None:
    asked: Json = {"stream": "messages", "filter": {"id": "m1"}, "expand": ["attachments"]}
    with_it = await host.call("query_records", asked)
    assert "one.pdf" in with_it.values()
    bare: dict[str, Json] = {name: {**d, "expand": []} for name, d in declarations.items()}
    host.world.rs.declarations = bare
    without = await host.call("query_records", asked)
    assert without.error_code() == "invalid_expand"
    advised = without.following()
    assert advised is not None
    assert (await host.call(advised.tool, advised.arguments)).ids()


async def test_a_top_n_says_so_and_can_be_raised(host: Host) -> None:
    asked: Json = {"stream": "transactions", "metric": "sum", "field": "amount"}
    top = await host.call("aggregate", {**asked, "group_by": "category", "limit": 5})
    assert top.group_count() == 5
    assert top.other_count() > 0
    advised = top.following()
    assert advised is not None
    every = await host.call(advised.tool, advised.arguments)
    assert every.group_count() == 14
    assert every.other_count() == 0


async def test_changes_are_read_and_resumed(host: Host) -> None:
    seen = await host.call("query_records", {"stream": "messages", "changes_since": "beginning"})
    following = seen.following()
    assert following is not None
    assert following.arguments["changes_since"] == "djE6OTk"
    assert (await host.call(following.tool, following.arguments)).error_code() is None


async def test_a_cut_record_is_continued(host: Host) -> None:
    host.world.rs.sources[0].streams["messages"]["m8"]["body"] = large
    page = await host.call("query_records", {"stream": "messages", "filter": {"id": "m8"}})
    call = page.cut()
    if host.view is SmallWindow and call is None:
        document = await host.call("fetch", {"id": page.ids()[0]})
        call = document.cut()
    assert call is not None
    first = await host.call(call.tool, {**call.arguments, "limit_chars": limit_chars(host)})
    assert await walk(host, first) == large[call.arguments["offset_chars"] :]


async def test_bytes_are_reached_by_their_resource(host: Host) -> None:
    page = await host.call("query_records", {"stream": "messages", "filter": {"id": "m10"}})
    contents = await host.door.read(page.blob_uri())
    assert b64decode(contents[0]["blob"]) == photo


async def test_the_full_schema_of_one_stream(host: Host) -> None:
    asked: Json = {"stream": "messages", "detail": "full"}
    refused = await host.call("schema", asked)
    assert refused.error_code() == "ambiguous_schema_detail"
    chosen = refused.connections()[0]
    full = await host.call("schema", {**asked, "connection_id": chosen})
    assert full.schema_of("subject") == {"type": "string"}


async def test_a_revoked_source_of_a_package_is_told(host: Host) -> None:
    rs = world("mcp_package")
    rs.sources = rs.sources[:1] + rs.sources[2:]
    rs.unavailable = [
        {
            "connection_id": "cin_b",
            "connector_key": "gmail",
            "grant_id": "grt_2",
            "reason": "grant_revoked",
            "next_step": "reapprove",
        }
    ]
    host.world.rs = rs
    assert (await host.call("schema", {})).unavailable() == ["cin_b"]
    refused = await host.call("query_records", {"stream": "messages", "connection_id": "cin_b"})
    assert refused.error_code() == "connection_not_found"
    assert refused.unavailable() == ["cin_b"]
    kept = await host.call("query_records", {"stream": "messages", "connection_id": "cin_a"})
    assert kept.ids()


async def test_a_grant_that_ends_between_two_calls(host: Host) -> None:
    asked: Json = {"stream": "messages", "limit": 5}
    first = await host.call("query_records", asked)
    following = first.following()
    assert following is not None

    def ended(request: Request) -> Answer | None:
        error = {"type": "permission_error", "code": "grant_revoked", "message": "Ended."}
        return Answer(403, {"error": error})

    host.world.rs.script = ended
    refused = await host.call(following.tool, following.arguments)
    assert refused.error_code() == "grant_revoked"
    assert refused.following() is None
    assert "approve" in refused.values()


async def test_links_never_reach_openai_clients() -> None:
    async with http_door("http-2025", World(), bearer="pdpp_at_openai") as door:
        host = Host(door, View)
        for tool, arguments in (
            ("query_records", {"stream": "messages", "limit": 8}),
            ("read_record_field", {"id": "cin_a/messages:m8", "field_path": "body"}),
            ("fetch", {"id": "cin_a/messages:m9"}),
        ):
            assert (await host.call(tool, arguments)).result.links == []
