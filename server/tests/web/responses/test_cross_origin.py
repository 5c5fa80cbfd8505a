"""Which browsers may read what, over the whole server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from personal_server.app.server import open_server
from personal_server.settings import Settings

pytestmark = pytest.mark.anyio
ORIGIN = "http://127.0.0.1:7662"
PAGE = "http://localhost:6274"
ANYWHERE = {
    "/.well-known/oauth-authorization-server": "GET",
    "/.well-known/oauth-protected-resource": "GET",
    "/.well-known/oauth-protected-resource/mcp": "GET",
    "/.well-known/openid-configuration": "GET",
    "/.well-known/oauth-authorization-server/mcp": "GET",
    "/.well-known/oauth-protected-resource/v1": "GET",
    "/v1/openapi.json": "GET",
    "/v1/schema": "GET",
    "/v1/streams/entries/records": "GET",
    "/icon.svg": "GET",
    "/oauth/register": "POST",
    "/oauth/token": "POST",
    "/oauth/par": "POST",
    "/oauth/revoke": "POST",
    "/oauth/device_authorization": "POST",
}
NOWHERE = {
    "/oauth/authorize": "GET",
    "/consent/ar_none": "GET",
    "/device": "GET",
    "/owner/": "GET",
    "/owner/login": "POST",
    "/introspect": "POST",
    "/grants/current": "GET",
    "/grants/grt_none/revoke": "POST",
    "/grant-packages/gpkg_none/revoke": "POST",
}
ASKED = (
    "Accept, Authorization, Content-Type, DPoP, If-None-Match, If-Range, Last-Event-ID,"
    " MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, PDPP-Tool, PDPP-Version, Range,"
    " Request-Id, X-Request-Id"
)
EXPOSED = (
    "DPoP-Nonce, ETag, Link, MCP-Protocol-Version, PDPP-Version, RateLimit-Limit,"
    " RateLimit-Remaining, RateLimit-Reset, Request-Id, Retry-After, WWW-Authenticate, X-Request-Id"
)
WRONG = {"GET": "DELETE", "POST": "GET"}


@pytest.fixture
async def http(tmp_path: Path) -> AsyncGenerator[httpx2.AsyncClient]:
    with open_server(Settings(data_dir=tmp_path / "data")) as server:
        transport = httpx2.ASGITransport(server.app)
        async with httpx2.AsyncClient(
            transport=transport, base_url=ORIGIN, headers={"Origin": PAGE}
        ) as opened:
            yield opened


def words(header: str) -> set[str]:
    return {word.strip() for word in header.split(",")}


def cross_origin(answer: httpx2.Response) -> set[str]:
    return {name for name in answer.headers if name.startswith("access-control-")}


async def test_a_browser_may_ask_first_wherever_anybody_may_read(http: httpx2.AsyncClient) -> None:
    for path, method in ANYWHERE.items():
        asked = await http.options(path, headers={"Access-Control-Request-Method": method})
        assert (path, asked.status_code) == (path, 204)
        assert asked.content == b""
        assert asked.headers["access-control-allow-origin"] == "*"
        assert method in words(asked.headers["access-control-allow-methods"])
        assert words(asked.headers["access-control-allow-headers"]) == words(ASKED)
        assert asked.headers["access-control-max-age"] == "600"
        assert "access-control-allow-credentials" not in asked.headers


async def test_answers_and_errors_are_readable_there(http: httpx2.AsyncClient) -> None:
    for path, method in ANYWHERE.items():
        for tried in (method, WRONG[method]):
            answer = await http.request(tried, path)
            if tried != method and path.endswith("/records"):
                continue  # deleting is the owner's, and closed to browsers
            assert (path, answer.headers["access-control-allow-origin"]) == (path, "*")
            assert words(answer.headers["access-control-expose-headers"]) == words(EXPOSED)
            assert len(answer.headers.get_list("access-control-allow-origin")) == 1


async def test_no_other_page_reads_what_is_the_owners(http: httpx2.AsyncClient) -> None:
    for path, method in NOWHERE.items():
        asked = await http.options(path, headers={"Access-Control-Request-Method": method})
        assert (path, asked.status_code, cross_origin(asked)) == (path, 405, set())
        assert cross_origin(await http.request(method, path)) == set()


@pytest.mark.parametrize("method", ["OPTIONS", "GET", "POST"])
async def test_the_adapter_names_the_page_that_asked(http: httpx2.AsyncClient, method: str) -> None:
    answer = await http.request(method, "/mcp")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "Origin" in words(answer.headers["vary"])
    assert words(answer.headers["access-control-expose-headers"]) == words(EXPOSED)
    assert "access-control-allow-credentials" not in answer.headers
    refused = await http.request(method, "/mcp", headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403
    assert "access-control-allow-origin" not in refused.headers


async def test_documents_name_what_they_depend_on(http: httpx2.AsyncClient) -> None:
    for path in list(ANYWHERE)[:3]:
        answer = await http.get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "public, max-age=300")
        # to pages of another origin a server gives no name of its own
        named = ", Origin" if "resource_name" in answer.json() else ""
        assert answer.headers["vary"] == f"Host, X-Forwarded-Host, X-Forwarded-Proto{named}"
        assert answer.headers["content-type"].startswith("application/json")
