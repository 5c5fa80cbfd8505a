"""An MCP host with the official SDK's OAuth client, and the owner who decides beside it."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientMetadata,
    OAuthToken,
)
from selenium.webdriver.common.by import By

from pdpp_mcp_server.rs_client.authorization_flows import Listener
from personal_server.console.consent_view import UNKNOWN
from server.tests.authorization_server.keeper import Keeper
from tests.browser.site import Owner

TOOLS = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]
SECONDS = 30


class Agent:
    """An MCP host; it registers, or is known by the document at `document_url`.

    Shapes: the consent page must show how far it is known (`level`), and `named` beside its name.
    """

    provider: type[OAuthClientProvider] = OAuthClientProvider
    name = "Notes agent"
    named: tuple[str, ...] = ()
    level = UNKNOWN

    def __init__(self, owner: Owner, listener: Listener, document_url: str | None = None) -> None:
        self.owner, self.listener, self.keeper = owner, listener, Keeper()
        self.consents, self.state = 0, ""
        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": self.name,
                "redirect_uris": [listener.redirect_uri],
                "grant_types": ["authorization_code", "refresh_token"],
            }
        )
        self.url = f"{owner.site.origin}/mcp"
        self.auth = self.provider(
            self.url,
            metadata,
            self.keeper,
            self.consent,
            self.came_back,
            client_metadata_url=document_url,
        )

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[ClientSession]:
        async with (
            httpx2.AsyncClient(auth=self.auth, timeout=240) as http,
            streamable_http_client(self.url, http_client=http) as (reading, writing, *_),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            yield session

    async def consent(self, address: str) -> None:
        self.consents += 1
        self.state = parse_qs(urlsplit(address).query)["state"][0]
        await anyio.to_thread.run_sync(self.decide, address)

    def decide(self, address: str) -> None:
        allow_home_mailbox(self.owner, address, self.level, self.name, *self.named)
        assert self.owner.shows("#done")

    async def came_back(self) -> AuthorizationCodeResult:
        answer = await anyio.to_thread.run_sync(self.listener.answer, SECONDS, self.state)
        return AuthorizationCodeResult(
            code=answer["code"], state=answer["state"], iss=answer["iss"]
        )

    def let_the_token_expire(self) -> None:
        """The next request finds the access token past its time, and refreshes first."""
        self.auth.context.token_expiry_time = 1


def allow_home_mailbox(owner: Owner, address: str, level: str, *named: str) -> None:
    """The app asks for nothing in particular: pick the home mailbox, then allow."""
    owner.open(address)
    assert owner.shows(f".trust.{level}")
    claimed = owner.all('[data-authorship="client"].who')
    assert claimed or level != UNKNOWN, "a name that nobody checked is the app's own word"
    for name in named:
        assert owner.sees(name)
    assert not owner.all('.decide button[value="approve"]')
    source = owner.driver.find_element(
        By.XPATH,
        "//h2[contains(., 'E-mail')]/ancestor::section//input[starts-with(@name,'keep')]",
    )
    index = str(source.get_attribute("name")).removeprefix("keep.")
    owner.press(source)
    owner.rest()
    owner.tick(f"conn.{index}", "cin_home")
    owner.tick(f"stream.{index}.messages")
    owner.preview()
    assert owner.figure() == 40
    assert "Lu•••" in owner.driver.page_source
    assert "Lunch" not in owner.driver.page_source
    owner.decide("approve")


def end_access(owner: Owner) -> None:
    """The owner ends the one access there is."""
    owner.open(f"{owner.site.origin}/owner/access")
    owner.press(owner.find('main a[href*="/owner/access/"]'))
    assert owner.sees("Home mailbox")
    owner.press(owner.find("button.danger"))
    assert owner.shows('main[data-state="revoked"]')


async def read_messages(session: ClientSession) -> list[Any]:
    """Two records of the mailbox."""
    found: Any = await session.call_tool("query_records", {"stream": "messages", "limit": 2})
    return found.structured_content["data"]["data"]


async def live_through(agent: Agent) -> tuple[OAuthToken, OAuthToken]:
    """Connect from nothing, read, refresh, lose the access, ask again; the tokens on the way."""
    async with agent.session() as session:
        assert [tool.name for tool in (await session.list_tools()).tools] == TOOLS
        assert len(await read_messages(session)) == 2
    first = agent.keeper.tokens
    agent.let_the_token_expire()
    async with agent.session() as session:
        assert len(await read_messages(session)) == 2
    assert agent.consents == 1
    refreshed = agent.keeper.tokens
    assert refreshed != first
    await anyio.to_thread.run_sync(end_access, agent.owner)
    async with agent.session() as session:
        assert len(await read_messages(session)) == 2
    assert agent.consents == 2
    assert first is not None
    assert agent.keeper.tokens is not None
    return first, agent.keeper.tokens
