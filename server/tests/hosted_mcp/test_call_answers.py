"""Calls answered without the SDK: the same bytes and headers as its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from adapter.tests.server.test_server import calls as every_tool
from pdpp_mcp_server import tool_runs
from pdpp_mcp_server.server_offer import personal_data
from personal_server.hosted_mcp.http import HostedApp
from tests.requirements.doors import HttpWire, Outer, World, hosted, origin

pytestmark = pytest.mark.anyio
WITHOUT = {"request-id", "x-request-id"}
WORST: list[tuple[str, Mapping[str, Any]]] = [
    ("query_records", {"stream": "nothing"}),
    ("query_records", {"stream": "messages", "limit": 99999999999999999999}),
    ("query_records", {"stream": "messages", "surprising": "\u00e9"}),
    ("search", {}),
]


class Sdk:
    """Counts what is handed to the SDK."""

    def __init__(self, app: HostedApp) -> None:
        self.calls = 0
        self.sessions = app.sessions
        app.sessions = self  # type: ignore[assignment]

    async def handle(self, *asked: Any) -> None:
        self.calls += 1
        await self.sessions.handle(*asked)


@pytest.fixture(autouse=True)
def same_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results differ by the fence's number; here it is the same."""
    monkeypatch.setattr(tool_runs, "draw_nonce", lambda: "0123456789ab")


async def answers(
    wire: HttpWire, asked: list[tuple[str, Mapping[str, Any]]]
) -> list[tuple[int, dict[str, str], bytes]]:
    """Status, headers and body of each call."""
    found: list[tuple[int, dict[str, str], bytes]] = []
    for name, arguments in asked:
        told = await wire.post("tools/call", {"name": name, "arguments": dict(arguments)})
        headers = {key: value for key, value in told.headers.items() if key not in WITHOUT}
        found.append((told.status_code, headers, told.content))
    return found


def client(app: HostedApp) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=Outer(app)), base_url=origin)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_call_is_answered_as_the_sdk_does(version: str) -> None:
    asked = [*every_tool, *WORST]
    ours = hosted(World())
    async with ours.run(), client(ours) as http:
        sdk = Sdk(ours)
        found = await answers(HttpWire(http, version), asked)
    theirs = hosted(World(), offer=replace(personal_data, tools=dict(personal_data.tools)))
    async with theirs.run(), client(theirs) as http:
        assert found == await answers(HttpWire(http, version), asked)
    assert sdk.calls == 2  # the first, which tells how it judges, and the one with a long number


async def test_what_is_wrong_with_a_request_is_said_after_a_good_one_too() -> None:
    app = hosted(World())
    params: dict[str, Any] = {"name": "schema", "arguments": {}}
    async with app.run(), client(app) as http:
        good = HttpWire(http, "2025-11-25")
        for _ in range(2):
            assert (await good.post("tools/call", params)).status_code == 200
        bad = {"Accept": "text/html"}
        wire = HttpWire(http, "2025-11-25", headers=bad)
        assert (await wire.post("tools/call", params)).status_code == 406
        wire = HttpWire(http, "1999-01-01")
        assert (await wire.post("tools/call", params)).status_code == 400
        wire = HttpWire(http, "2025-11-25", "pdpp_at_revoked")
        assert (await wire.post("tools/call", params)).status_code == 401
        unknown = await good.post("tools/call", {"name": "nothing"})
        assert "error" in unknown.json()


async def test_the_later_revision_is_answered_by_the_sdk() -> None:
    app = hosted(World())
    async with app.run(), client(app) as http:
        sdk = Sdk(app)
        await answers(HttpWire(http, "2026-07-28"), every_tool[:2])
    assert sdk.calls == 2
