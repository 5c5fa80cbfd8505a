"""The same twelve journeys over our own resource server, each finished by each of five hosts."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from adapter.tests.seed import photo
from pdpp_kernel.errors import GrantRevoked
from tests.journeys.hosts import Host, large, limit_chars, walk
from tests.journeys.views import View, views
from tests.requirements.doors import World, memory_door, settings_for
from tests.requirements.real import Real, told_its_origin

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
moment = {"from": "shop@example.org", "sent_at": "2026-03-01T10:00:00Z"}


@pytest.fixture(params=views, ids=lambda view: view.name)
def view(request: pytest.FixtureRequest) -> type[View]:
    return request.param


@pytest.fixture
async def real(anyio_backend: str) -> Real:
    return await Real.seeded()


@asynccontextmanager
async def host_of(real: Real, token: str, view: type[View]) -> AsyncGenerator[Host]:
    behind = World(told_its_origin(real.living.app))
    async with memory_door(behind, settings_for("auto"), token) as door:
        yield Host(door, view)


def end_member(real: Real, package: str, connector: str) -> None:
    """The owner ends one grant of a package."""
    held = real.living.resolved[package]
    grants = tuple(
        replace(member, status="grant_revoked") if member.connector_key == connector else member
        for member in held.grants
    )
    real.living.resolved[package] = replace(held, grants=grants)


async def write(real: Real, key: str, body: str) -> None:
    row = {"id": key, "subject": f"About {key}", "body": body, **moment}
    await real.living.ingest(real.personal, "messages", [row])


async def test_schema_then_a_query_paged_to_its_end(real: Real, view: type[View]) -> None:
    async with host_of(real, "mine", view) as host:
        assert sorted((await host.call("schema", {})).streams()) == ["attachments", "messages"]
        arguments: Json = {"stream": "messages", "limit": 5, "count": "exact"}
        ids = await host.all_ids(arguments, count="exact:12")
        assert len(ids) == len(set(ids)) == 12


async def test_search_then_fetch_by_one_id(real: Real, view: type[View]) -> None:
    async with host_of(real, "all", view) as host:
        found = await host.call("search", {"query": "lisbon"})
        document = await host.call("fetch", {"id": found.ids()[0]})
        assert document.document["title"] in {"Personal invoice 8", "Work invoice 8"}
        assert document.document["url"].startswith("http")
        assert document.ids() == found.ids()[:1]


async def test_a_hit_leads_to_the_whole_of_a_long_field(real: Real, view: type[View]) -> None:
    await write(real, "long", large)
    async with host_of(real, "mine", view) as host:
        call = (await host.call("search", {"query": "8999"})).cut()
        assert call is not None
        begin = {**call.arguments, "limit_chars": limit_chars(host)}
        first = await host.call(call.tool, {**begin, "offset_chars": 0})
        assert await walk(host, first) == large


async def test_an_ambiguity_is_resolved_from_the_error(real: Real, view: type[View]) -> None:
    asked: Json = {"stream": "transactions", "limit": 3}
    async with host_of(real, "all", view) as host:
        refused = await host.call("query_records", asked)
        assert refused.error_code() == "ambiguous_connection"
        page = await host.call(
            "query_records", {**asked, "connection_id": refused.connections()[0]}
        )
        assert page.ids()[0].startswith(f"{real.bank}/transactions:")


async def test_expansion_with_and_without_capability(real: Real, view: type[View]) -> None:
    async with host_of(real, "mine", view) as host:
        asked: Json = {"stream": "messages", "filter": {"sent_at": {"lt": "2026-01-02"}}}
        with_it = await host.call("query_records", {**asked, "expand": ["attachments"]})
        assert "garden.png" in with_it.values()
        without = await host.call(
            "query_records", {"stream": "attachments", "expand": ["messages"]}
        )
        assert without.error_code() == "invalid_expand"
        advised = without.following()
        assert advised is not None
        assert (await host.call(advised.tool, advised.arguments)).ids()


async def test_a_top_n_says_so_and_can_be_raised(real: Real, view: type[View]) -> None:
    asked: Json = {"stream": "transactions", "metric": "sum", "field": "amount"}
    async with host_of(real, "bank", view) as host:
        top = await host.call("aggregate", {**asked, "group_by": "category", "limit": 5})
        assert (top.group_count(), top.other_count()) == (5, 18)
        advised = top.following()
        assert advised is not None
        every = await host.call(advised.tool, advised.arguments)
        assert (every.group_count(), every.other_count()) == (14, 0)


async def test_changes_are_read_and_resumed(real: Real, view: type[View]) -> None:
    async with host_of(real, "work", view) as host:
        asked: Json = {"stream": "messages", "changes_since": "beginning", "fields": ["subject"]}
        following = (await host.page("query_records", asked)).following()
        while following is not None and "cursor" in following.arguments:
            following = (await host.page("query_records", following.arguments)).following()
        assert following is not None
        assert (await host.call(following.tool, following.arguments)).ids() == []
        fresh = {"id": "fresh", "subject": "New", "body": "Just in.", **moment}
        await real.living.ingest(real.work, "messages", [fresh])
        resumed = await host.call(following.tool, following.arguments)
        assert resumed.ids() == [f"{real.work}/messages:fresh"]
        assert resumed.rows() == [{"id": "fresh", "subject": "New"}]


async def test_a_cut_record_is_continued(real: Real, view: type[View]) -> None:
    await write(real, "long", large)
    async with host_of(real, "mine", view) as host:
        page = await host.call("query_records", {"stream": "messages", "limit": 1})
        call = page.cut()
        if call is None:
            call = (await host.call("fetch", {"id": page.ids()[0]})).cut()
        assert call is not None
        first = await host.call(call.tool, {**call.arguments, "limit_chars": limit_chars(host)})
        assert await walk(host, first) == large[call.arguments["offset_chars"] :]


async def test_bytes_are_reached_by_their_resource(real: Real, view: type[View]) -> None:
    async with host_of(real, "mine", view) as host:
        page = await host.call("query_records", {"stream": "attachments"})
        contents = await host.door.read(page.blob_uri())
        assert b64decode(contents[0]["blob"]) == photo


async def test_the_full_schema_of_one_stream(real: Real, view: type[View]) -> None:
    asked: Json = {"stream": "messages", "detail": "full"}
    async with host_of(real, "both", view) as host:
        refused = await host.call("schema", asked)
        assert refused.error_code() == "ambiguous_schema_detail"
        full = await host.call("schema", {**asked, "connection_id": refused.connections()[0]})
        assert full.schema_of("subject")["type"] == "string"


async def test_a_revoked_source_of_a_package_is_told(real: Real, view: type[View]) -> None:
    end_member(real, "two", "chase")
    async with host_of(real, "two", view) as host:
        assert (await host.call("schema", {})).unavailable() == [real.bank]
        asked: Json = {"stream": "transactions", "connection_id": real.bank}
        refused = await host.call("query_records", asked)
        assert refused.error_code() == "grant_revoked"
        assert refused.unavailable() == [real.bank]
        kept = await host.call("query_records", {"stream": "messages"})
        assert kept.ids()


async def test_a_grant_that_ends_between_two_calls(real: Real, view: type[View]) -> None:
    async with host_of(real, "mine", view) as host:
        following = (
            await host.call("query_records", {"stream": "messages", "limit": 5})
        ).following()
        assert following is not None
        real.living.ended["mine"] = GrantRevoked("The owner ended this access.")
        refused = await host.call(following.tool, following.arguments)
        assert refused.error_code() == "grant_revoked"
        assert refused.following() is None
        assert "approve" in refused.values()
