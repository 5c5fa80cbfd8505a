"""The metadata document, as the SDK and the hosts read it."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.shared.auth import OAuthMetadata

pytestmark = pytest.mark.anyio
PATH = "/.well-known/oauth-authorization-server"


@pytest.mark.parametrize(
    "origin", ["https://me.example", "http://127.0.0.1:7662", "http://localhost:7662"]
)
async def test_the_document_names_the_origin_that_was_asked(server: Any, origin: str) -> None:
    server.origin = origin
    async with server.client() as http:
        answer = await http.get(PATH)
    document = answer.json()
    parsed = OAuthMetadata.model_validate(document)
    assert document["issuer"] == origin
    assert str(parsed.token_endpoint) == f"{origin}/oauth/token"
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["token_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
    assert document["protected_resources"] == [origin, f"{origin}/mcp"]
    assert "logo_uri" not in document
    names = [c["client_id"] for c in document["pdpp_pre_registered_public_clients"]]
    assert names == ["pdpp-cli"]
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert answer.headers["vary"].startswith("Host")


async def test_unknown_queries_versions_and_paths_are_refused(server: Any) -> None:
    async with server.client() as http:
        query = await http.get(f"{PATH}?x=1")
        version = await http.get(PATH, headers={"PDPP-Version": "1999-01-01"})
        path = await http.get("/oauth/none")
        preflight = await http.options("/oauth/token")
    assert (query.status_code, query.json()["error"]["param"]) == (400, "x")
    assert (version.status_code, version.json()["error"]["code"]) == (400, "unsupported_version")
    assert (path.status_code, path.json()["error"]["code"]) == (404, "not_found")
    assert preflight.status_code == 204
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert path.headers["pdpp-version"] == "2026-04-06"
