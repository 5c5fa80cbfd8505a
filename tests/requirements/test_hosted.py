"""`/mcp` over HTTP: admission, challenges, statelessness."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from tests.requirements.doors import (
    HttpWire,
    Outer,
    World,
    eras,
    greeting_request,
    hosted,
    origin,
    token,
)

pytestmark = pytest.mark.anyio
Json = dict[str, Any]
metadata = f"{origin}/.well-known/oauth-protected-resource/mcp"
icon_link = f'<{origin}/icon.svg>; rel="icon"; type="image/svg+xml"'
methods: list[tuple[str, Json]] = [
    ("initialize", greeting_request("2025-11-25")[1]),
    ("tools/list", {}),
    ("tools/call", {"name": "query_records", "arguments": {"stream": "messages"}}),
]


@pytest.fixture
async def http(anyio_backend: str) -> AsyncGenerator[httpx2.AsyncClient]:
    behind = World()
    app = hosted(behind)
    transport = httpx2.ASGITransport(app=Outer(app))
    async with app.run(), httpx2.AsyncClient(transport=transport, base_url=origin) as client:
        client.headers["accept"] = "application/json, text/event-stream"
        yield client
        assert all(request.bearer == f"Bearer {token}" for request in behind.rs.requests)


def challenge_of(response: httpx2.Response) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="([^"]*)"', response.headers["www-authenticate"]))


@pytest.mark.req("0.6")
@pytest.mark.req("4.13")
async def test_an_owner_token_is_refused_before_mcp_runs(http: httpx2.AsyncClient) -> None:
    for era in eras.values():
        wire = HttpWire(http, era, "pdpp_at_owner")
        for method, params in methods:
            response = await wire.post(method, params)
            assert response.status_code == 403
            body = response.json()
            assert body["error"]["type"] == "permission_error"
            assert "/v1" in body["error"]["message"]
            assert "www-authenticate" not in response.headers
            assert "result" not in body
            assert "invoice" not in response.text


@pytest.mark.req("4.10")
async def test_every_post_stands_alone_as_json(http: httpx2.AsyncClient) -> None:
    for era in eras.values():
        for method, params in (greeting_request(era), *methods[1:]):
            response = await HttpWire(http, era, headers={"Mcp-Session-Id": "old"}).post(
                method, params
            )
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("application/json")
            assert "mcp-session-id" not in response.headers
            assert response.headers["link"] == icon_link
            assert response.headers["cache-control"] == "no-store"
            assert response.headers["request-id"] == response.headers["x-request-id"]
    got = await http.get("/mcp", headers={"Authorization": f"Bearer {token}"})
    assert got.status_code == 405
    assert got.headers["allow"] == "POST"
    notified = await http.post(
        "/mcp",
        json={"jsonrpc": "2.0", "method": "notifications/initialized"},
        headers={"Authorization": f"Bearer {token}"},
    )
    assert notified.status_code == 202


@pytest.mark.req("4.12")
@pytest.mark.req("4.48")
async def test_a_challenge_names_the_metadata_of_this_resource(http: httpx2.AsyncClient) -> None:
    cases = [
        (None, "authentication_error"),
        ("Basic abc", "authentication_error"),
        ("Bearer ", "authentication_error"),
        ("Bearer pdpp_at_unknown", "invalid_token"),
        ("bearer pdpp_at_rest_only", "invalid_token"),
        ("Bearer pdpp_at_revoked", "grant_revoked"),
        ("Bearer pdpp_at_expired", "grant_expired"),
        ("Bearer pdpp_at_invalid", "grant_invalid"),
    ]
    for value, code in cases:
        headers = {"Authorization": value} if value else {}
        response = await http.post("/mcp", json={}, headers=headers)
        assert response.status_code == 401
        error = response.json()["error"]
        assert error["type"] == "authentication_error"
        assert error["code"] == code
        assert error["next_step"]
        assert response.headers["www-authenticate"].startswith("Bearer ")
        challenge = challenge_of(response)
        assert challenge["resource_metadata"] == error["resource_metadata"] == metadata
        assert challenge["scope"] == "pdpp:read"
        sent = code != "authentication_error"
        assert challenge.get("error") == ("invalid_token" if sent else None)


@pytest.mark.req("4.46")
async def test_the_icon_is_linked_before_a_valid_bearer(http: httpx2.AsyncClient) -> None:
    bearer = {"Authorization": f"Bearer {token}"}
    answers = [
        (401, await http.post("/mcp", json={})),
        (401, await http.post("/mcp", json={}, headers={"Authorization": "Bearer x"})),
        (403, await http.post("/mcp", headers={"Authorization": "Bearer pdpp_at_owner"})),
        (405, await http.get("/mcp", headers=bearer)),
        (400, await http.post("/mcp?a=1", json={}, headers=bearer)),
        (413, await http.post("/mcp", content=b"x" * 4_194_305, headers=bearer)),
    ]
    for status, response in answers:
        assert response.status_code == status
        assert response.headers["link"] == icon_link
    other = await http.post("http://evil.example/mcp", json={})
    assert other.status_code == 421
    assert other.json()["error"]["code"] == "misdirected_request"
    assert "link" not in other.headers
    assert "www-authenticate" not in other.headers


@pytest.mark.req("4.45")
@pytest.mark.parametrize("bearer", [token, "pdpp_at_package"])
async def test_the_server_names_its_icon(bearer: str) -> None:
    app = hosted(World())
    transport = httpx2.ASGITransport(app=Outer(app))
    async with app.run(), httpx2.AsyncClient(transport=transport, base_url=origin) as client:
        for era in eras.values():
            found = await HttpWire(client, era, bearer).request(*greeting_request(era))
            info = found.get("serverInfo")
            if info is None:
                info = found["_meta"]["io.modelcontextprotocol/serverInfo"]
            assert info["name"] == "pdpp-personal-server"
            assert info["title"] == "Personal data"
            icon = {"src": f"{origin}/icon.svg", "mimeType": "image/svg+xml", "sizes": ["any"]}
            assert info["icons"] == [icon]


async def test_browser_pages_of_other_origins_are_refused(http: httpx2.AsyncClient) -> None:
    headers = {"Authorization": f"Bearer {token}", "Origin": "https://evil.example"}
    assert (await http.post("/mcp", json={}, headers=headers)).status_code == 403
    headers["Origin"] = "http://localhost:6274"
    preflight = await http.options("/mcp", headers=headers)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "http://localhost:6274"
    assert preflight.headers["vary"] == "Origin"


@pytest.mark.parametrize("era", eras.values())
@pytest.mark.parametrize("method", ["subscriptions/listen", "logging/setLevel", "tasks/get"])
async def test_a_method_that_is_not_offered_is_refused_as_json(
    http: httpx2.AsyncClient, era: str, method: str
) -> None:
    answer = await HttpWire(http, era).post(method, {"notifications": {}, "level": "info"})
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.json()["error"]["code"] == -32601
    assert answer.status_code == (404 if era == "2026-07-28" else 200)
