"""The same seed through four doors: equal results, but for request ids, nonces and addresses."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from adapter.tests.loopback import LoopbackServer
from pdpp_mcp_server.calls import those_of_this_program
from pdpp_mcp_server.contract import published_contract
from tests.requirements.corpus import corpus, places, told
from tests.requirements.doors import (
    Door,
    RpcError,
    StdioDoor,
    StdioWire,
    World,
    environment,
    greeting_request,
    http_door,
    memory_door,
    origin,
    settings_for,
    write_cache,
)
from tests.requirements.real import Real, real_door, told_its_origin
from tests.requirements.recorded import RecordedRs, recordings

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
eras = ("http-2025", "http-2026")
timeline = {"type": "ref/prompt", "name": "timeline"}
typed = {"name": "stream", "value": "planted"}


@pytest.mark.req("0.2")
@pytest.mark.req("4.11")
async def test_all_doors_tell_the_same(stdio_process: StdioDoor) -> None:
    async with memory_door(World(), settings_for("auto")) as door:
        wanted = await told(door)
    for name in eras:
        async with http_door(name, World(), settings_for("auto")) as door:
            assert await told(door) == wanted, name
    assert await told(stdio_process.door()) == wanted
    assert origin not in json.dumps(wanted)


@pytest.mark.parametrize("recording", recordings)
async def test_all_doors_read_a_foreign_server_the_same(
    recording: str, stdio_process: StdioDoor
) -> None:
    async with memory_door(World(RecordedRs(recording)), settings_for("auto")) as door:
        wanted = await told(door)
        check(wanted)
    for name in eras:
        async with http_door(name, World(RecordedRs(recording)), settings_for("auto")) as door:
            assert await told(door) == wanted, name
    door = stdio_process.door()
    door.world.rs = RecordedRs(recording)
    assert await told(door) == wanted


@pytest.mark.parametrize("token", ["mine", "all"])
async def test_all_doors_read_our_own_server_the_same(token: str, tmp_path: Path) -> None:
    real = await Real.seeded()
    async with real_memory(real, token) as door:
        wanted = await told(door, names_of(real))
        check(wanted)
    for name in eras:
        real = await Real.seeded()
        async with real_door(real, token, name) as (door, _):
            assert await told(door, names_of(real)) == wanted, name
    real = await Real.seeded()
    async with real_stdio(real, token, tmp_path) as door:
        assert await told(door, names_of(real)) == wanted


def names_of(real: Real) -> Mapping[str, str]:
    return dict(zip(places, (real.personal, real.work, real.bank), strict=True))


def check(answers: list[Any]) -> None:
    """Every result is one that its tool publishes."""
    for (tool, _), answer in zip(corpus, answers, strict=False):
        schema = published_contract().tools[tool].output_schema
        jsonschema_rs.validator_for(schema).validate(answer["structuredContent"])
        error = answer["structuredContent"].get("error", {})
        assert error.get("code") != "internal_error"


def behind(real: Real) -> World:
    return World(told_its_origin(real.living.app))


def real_memory(real: Real, token: str) -> Any:
    return memory_door(behind(real), settings_for("auto"), token, those_of_this_program)


@asynccontextmanager
async def real_stdio(real: Real, token: str, root: Path) -> AsyncGenerator[Door]:
    world = behind(real)
    server = LoopbackServer(world)
    write_cache(root / ".pdpp", server.url, access_token=token, token_kind="client")
    wire = StdioWire(["--cache-root", str(root / ".pdpp")], environment())
    try:
        greeting = await wire.request(*greeting_request("2025-11-25"))
        wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield Door("stdio", wire, world, server.url, greeting)
    finally:
        wire.close()
        server.close()


@pytest.mark.parametrize("name", ["http-2025", "http-2026"])
async def test_no_log_line_holds_what_was_asked_or_said(
    name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level("DEBUG")
    behind = World()
    behind.rs.sources[0].streams["messages"]["m8"]["subject"] = "planted-title"
    async with http_door(name, behind) as door:
        await door.call("search", {"query": "planted-title"})
        await door.call("query_records", {"stream": "messages", "filter": {"id": "planted-filter"}})
        await door.call("fetch", {"id": "cin_a/messages:planted-key"})
        await door.call("fetch", {"id": "planted//id"})
        for uri in ("pdpp://stream/planted", "pdpp://record/planted"):
            with suppress(RpcError):
                await door.read(uri)
        await door.wire.request("completion/complete", {"ref": timeline, "argument": typed})
    lines = [r.getMessage() for r in caplog.records if r.name == "pdpp_mcp_server"]
    named = [line.split()[0] for line in lines]
    tools = ["search", "query_records", "fetch", "fetch", "resource", "resource", "completion"]
    assert named == [*[f"tool={tool}" for tool in tools], "mcp"]
    assert lines[-1].startswith("mcp counts calls=7 ")
    assert "route=/v1/streams/{stream}/records/{record} status=404 outcome=not_found" in lines[2]
    ours = [r.getMessage() for r in caplog.records if r.name.startswith(("personal", "httpx2"))]
    assert not any("planted" in line or "pdpp_at_" in line for line in ours)
