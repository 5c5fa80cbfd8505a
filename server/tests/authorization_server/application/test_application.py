"""The MCP SDK's own OAuth client connects at the first try: from nothing to a refresh.

The protected resource is a stand-in: a 401 with our challenge until a good bearer comes.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientMetadata,
)
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from pdpp_kernel.errors import PersonalServerError
from personal_server.reading.tokens import TokenResolver
from personal_server.storage.authorization_rows import ClientRow, GrantRow
from server.tests.authorization_server.keeper import Keeper
from tests.proving import bearer, unproven

pytestmark = pytest.mark.anyio
CALLBACK = "http://127.0.0.1:5555/cb"
ORIGIN = "http://127.0.0.1:7662"
URL = "https://app.example/client.json"


class Everything:
    """The authorization server and a stand-in for `/mcp`."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._authorization = server.app()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == "/mcp":
            await self._mcp(Request(scope))(scope, receive, send)
        elif path == "/.well-known/oauth-protected-resource/mcp":
            resource = {
                "resource": f"{ORIGIN}/mcp",
                "authorization_servers": [ORIGIN],
                "scopes_supported": ["pdpp:read"],
            }
            await JSONResponse(resource)(scope, receive, send)
        else:
            await self._authorization(scope, receive, send)

    def _mcp(self, request: Request) -> Response:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        resolver = TokenResolver(self._server.store, self._server.clock, unproven())
        try:
            found = resolver.resolve(bearer(token))
        except PersonalServerError as refused:
            metadata = f"{ORIGIN}/.well-known/oauth-protected-resource/mcp"
            challenge = f'Bearer resource_metadata="{metadata}", scope="pdpp:read"'
            return JSONResponse({"code": refused.code}, 401, {"WWW-Authenticate": challenge})
        return JSONResponse({"grants": [grant.grant_id for grant in found.grants]})


class Person:
    """A browser and its owner: follows to the consent page and allows."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.answer: dict[str, str] = {}
        self.visits = 0

    async def go(self, url: str) -> None:
        self.visits += 1
        transport = httpx2.ASGITransport(self._server.app())
        async with httpx2.AsyncClient(transport=transport) as browser:
            found = await browser.get(url)
        assert found.status_code == 303, found.text
        handle = urlsplit(found.headers["location"]).path.removeprefix("/consent/")
        self.answer = self._server.allow(handle)

    async def back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self.answer["code"], state=self.answer["state"], iss=self.answer["iss"]
        )


def provider(person: Person, keeper: Keeper, **over: Any) -> OAuthClientProvider:
    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "SDK",
            "redirect_uris": [CALLBACK],
            "grant_types": ["authorization_code", "refresh_token"],
        }
    )
    return OAuthClientProvider(
        server_url=f"{ORIGIN}/mcp",
        client_metadata=metadata,
        storage=keeper,
        redirect_handler=person.go,
        callback_handler=person.back,
        **over,
    )


@pytest.mark.parametrize("document", [False, True])
async def test_the_sdk_connects_refreshes_and_asks_again_after_an_end(
    server: Any, document: bool
) -> None:
    server.origin = ORIGIN
    person, keeper = Person(server), Keeper()
    over: dict[str, Any] = {}
    if document:
        published = {"client_id": URL, "client_name": "SDK", "redirect_uris": [CALLBACK]}
        server.web.publish(URL, published)
        over = {"client_metadata_url": URL}
    auth = provider(person, keeper, **over)
    transport = httpx2.ASGITransport(Everything(server))
    async with httpx2.AsyncClient(transport=transport, auth=auth) as http:
        first = await http.post(f"{ORIGIN}/mcp", json={})
        assert first.status_code == 200
        assert len(first.json()["grants"]) == 2
        assert keeper.tokens is not None
        assert keeper.tokens.refresh_token is not None
        known = server.rows(ClientRow, ClientRow.first_approved_at_ns.equals(server.now_ns))
        expected = "client_id_metadata_document" if document else "dynamic"
        assert [row.registration for row in known] == [expected]

        server.now_ns += 3_601 * 10**9
        auth.context.token_expiry_time = 1.0
        again = await http.post(f"{ORIGIN}/mcp", json={})
        assert again.status_code == 200
        assert person.visits == 1
        assert "refresh.rotated" in server.events()

        server.change(
            GrantRow, [GrantRow.revoked_at_ns.to(server.now_ns), GrantRow.reason.to("owner")]
        )
        anew = await http.post(f"{ORIGIN}/mcp", json={})
        assert anew.status_code == 200
        assert person.visits == 2
