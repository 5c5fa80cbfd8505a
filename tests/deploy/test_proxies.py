"""The proxies of docs/deploy.md, each with the very configuration that the page shows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Generator
from typing import Any

import pytest

from tests.deploy.proxied import ProxiedServer, proxied

LINES, LINE_CHARS = 50, 100_000
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "query_records", "arguments": {"stream": "transactions", "limit": 2}},
}
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ProxiedServer]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed (apt-get install {request.param})")
    with proxied(tmp_path_factory.mktemp(request.param), request.param) as found:
        yield found


def test_a_host_finds_the_way_to_a_token_through_it(server: ProxiedServer) -> None:
    with server.client() as client:
        refused = client.post("/mcp", json=CALL, headers=MCP)
        assert refused.status_code == 401
        where = f"{server.public_url}/.well-known/oauth-protected-resource/mcp"
        assert where in refused.headers["www-authenticate"]
        resource = client.get("/.well-known/oauth-protected-resource/mcp").json()
        assert resource["resource"] == f"{server.public_url}/mcp"
        issuer = client.get("/.well-known/oauth-authorization-server").json()
        assert issuer["issuer"] == server.public_url
        assert issuer["token_endpoint"] == f"{server.public_url}/oauth/token"


def test_an_agent_calls_a_tool_through_it(server: ProxiedServer) -> None:
    with server.client(Authorization=f"Bearer {server.client_token}") as client:
        answer = client.post("/mcp", json=CALL, headers=MCP)
    assert answer.status_code == 200
    assert len(answer.json()["result"]["structuredContent"]["data"]["data"]) == 2


def test_five_megabytes_go_in_and_stream_out_again(server: ProxiedServer) -> None:
    lines = [line(number) for number in range(LINES)]
    body = "\n".join(json.dumps(each) for each in lines)
    assert len(body) > 5_000_000
    with server.client(Authorization=f"Bearer {server.owner_token}") as client:
        sent = client.post(
            "/v1/ingest/messages?connection_id=cin_home",
            content=body,
            headers={"Content-Type": "application/x-ndjson"},
        )
        assert sent.json()["records_accepted"] == LINES, sent.text
        found = client.get("/v1/streams/messages/records/a%2Fb-1?connection_id=cin_home")
        assert found.json()["id"] == "a/b-1"
        with client.stream("GET", "/v1/owner/export") as export:
            assert "content-length" not in export.headers
            size = sum(len(part) for part in export.iter_raw())
    assert size > 5_000_000


def line(number: int) -> dict[str, Any]:
    record = {
        "id": f"a/b-{number}",
        "subject": "Large",
        "body": "x" * LINE_CHARS,
        "sent_at": "2026-01-01T00:00:00Z",
    }
    return {"key": record["id"], "data": record, "emitted_at": "2026-01-01T00:00:00Z"}


def test_a_caller_cannot_rename_the_server(server: ProxiedServer) -> None:
    with server.client(**{"X-Forwarded-Host": "evil.example"}) as client:
        document = client.get("/.well-known/oauth-protected-resource")
    assert document.json()["resource"] == server.public_url
