"""Clients connect from nothing, and the owner decides in a real browser with scripts off."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import Process
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from personal_server.rs_client.loopback import Listener, listening
from personal_server.storage.authorization_rows import GrantRow
from tests.browser.site import Owner, Site

pytestmark = [pytest.mark.browser, pytest.mark.anyio]
TOOLS = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]


class Keeper:
    """Token storage of the SDK, in memory."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Agent:
    """An MCP host with the SDK's OAuth client; the owner sits beside it."""

    def __init__(self, owner: Owner, listener: Listener) -> None:
        self.owner, self.listener, self.keeper = owner, listener, Keeper()
        self.consents = 0
        metadata = OAuthClientMetadata.model_validate(
            {
                "client_name": "Notes agent",
                "redirect_uris": [listener.redirect_uri],
                "grant_types": ["authorization_code", "refresh_token"],
            }
        )
        self.url = f"{owner.site.origin}/mcp"
        self.auth = OAuthClientProvider(
            self.url, metadata, self.keeper, self.consent, self.came_back
        )

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[ClientSession]:
        async with (
            httpx2.AsyncClient(auth=self.auth, timeout=60) as http,
            streamable_http_client(self.url, http_client=http) as (reading, writing, *_),
            ClientSession(reading, writing) as session,
        ):
            await session.initialize()
            yield session

    async def consent(self, address: str) -> None:
        self.consents += 1
        await anyio.to_thread.run_sync(self._decide, address)

    def _decide(self, address: str) -> None:
        """The app asks for nothing in particular: pick the home mailbox, then allow."""
        owner = self.owner
        owner.driver.get(address)
        assert owner.sees("Notes agent")
        assert not owner.all('.decide button[value="approve"]')
        source = owner.driver.find_element(
            By.XPATH,
            "//h2[contains(., 'E-mail')]/ancestor::section//input[starts-with(@name,'keep')]",
        )
        index = str(source.get_attribute("name")).removeprefix("keep.")
        owner.press(source)
        owner.tick(f"conn.{index}", "cin_home")
        owner.tick(f"stream.{index}.messages")
        owner.decide("preview")
        assert owner.sees("40 records")
        assert "Lu•••" in owner.driver.page_source
        assert "Lunch" not in owner.driver.page_source
        owner.decide("approve")
        assert owner.sees("You can close this window")

    async def came_back(self) -> AuthorizationCodeResult:
        answer = await anyio.to_thread.run_sync(self.listener.answer, 30)
        return AuthorizationCodeResult(
            code=answer["code"], state=answer["state"], iss=answer["iss"]
        )


async def read_messages(session: ClientSession) -> Any:
    found = await session.call_tool("query_records", {"stream": "messages", "limit": 2})
    return found.structured_content


async def test_the_sdks_client_connects_reads_refreshes_and_asks_again_after_the_end(
    owner: Owner, running: Site
) -> None:
    with listening() as listener:
        agent = Agent(owner, listener)
        async with agent.session() as session:
            assert [tool.name for tool in (await session.list_tools()).tools] == TOOLS
            assert len((await read_messages(session))["data"]["data"]) == 2
        first = agent.keeper.tokens
        agent.auth.context.token_expiry_time = 1
        async with agent.session() as session:
            assert len((await read_messages(session))["data"]["data"]) == 2
        assert agent.consents == 1
        assert agent.keeper.tokens != first
        await anyio.to_thread.run_sync(end_access, owner)
        async with agent.session() as session:
            assert len((await read_messages(session))["data"]["data"]) == 2
        assert agent.consents == 2
    assert first is not None
    assert agent.keeper.tokens is not None
    kept: Any = owner.driver.get_cookies()  # pyright: ignore[reportUnknownVariableType]
    cookies = [str(cookie["value"]) for cookie in kept]
    tokens = [agent.keeper.tokens.access_token, str(agent.keeper.tokens.refresh_token)]
    spent = [first.access_token, str(first.refresh_token)]
    assert kept_on_disk(running, [*cookies, *tokens, *spent]) == []


def kept_on_disk(running: Site, secrets: list[str]) -> list[str]:
    """The secrets that some file of the data directory holds in clear."""
    files = [path.read_bytes() for path in (running.folder / "data").rglob("*") if path.is_file()]
    return [secret for secret in secrets if any(secret.encode() in file for file in files)]


def end_access(owner: Owner) -> None:
    with owner.site.server.stores.authorization.read() as reader:
        (grant,) = reader.rows(GrantRow, revoked_at_ns=None)
    owner.driver.get(f"{owner.site.origin}/owner/access/{grant.grant_id}")
    assert owner.sees("Home mailbox")
    owner.press(owner.find("button.danger"))
    assert owner.sees("This access is revoked: you ended it.")


async def test_the_command_line_connects_by_device_code_and_serves(
    owner: Owner, running: Site, tmp_path: Path
) -> None:
    cache = str(tmp_path / ".pdpp")
    command = [sys.executable, "-m", "personal_server.cli", "connect", running.origin]
    options = ["--source", "bank", "--stream", "transactions", "--no-browser", "--json"]
    process = await anyio.open_process(
        [*command, *options, "--cache-root", cache], stderr=subprocess.PIPE
    )
    address = await offered_address(process)
    await anyio.to_thread.run_sync(enter_code, owner, address)
    out = await everything_of(process)
    assert process.returncode == 0
    connected = json.loads(out)
    assert connected["sources"] == ["bank"]
    assert await tools_over_stdio(running.origin, cache) == TOOLS
    status = await run("status", running.origin, "--cache-root", cache, "--json")
    assert json.loads(status)[0]["status"] == "active"
    await run("disconnect", running.origin, "--cache-root", cache)


async def offered_address(process: Process, mark: str = "user_code=") -> str:
    """The address that the command tells the person to open."""
    assert process.stderr is not None
    said = ""
    while mark not in said or not said.endswith("\n"):
        said += (await process.stderr.receive()).decode()
    return next(word for word in said.split() if mark in word)


async def everything_of(process: Process) -> bytes:
    """What a command prints until its end."""
    assert process.stdout is not None
    out = b"".join([chunk async for chunk in process.stdout])
    await process.wait()
    return out


def enter_code(owner: Owner, address: str) -> None:
    """Compare the code, press the button with the keyboard only, and allow."""
    owner.driver.get(address)
    owner.find("#user_code").send_keys(Keys.ENTER)
    assert owner.sees("A device asks")
    assert owner.sees("30 records")
    owner.find('.decide button[value="approve"]').send_keys(Keys.ENTER)
    assert owner.sees("You can close this window")


async def tools_over_stdio(origin: str, cache: str) -> list[str]:
    """What `pdpp mcp` serves on the cached credential."""
    arguments = ["-m", "personal_server.cli", "mcp", "--provider-url", origin]
    server = StdioServerParameters(command=sys.executable, args=[*arguments, "--cache-root", cache])
    async with (
        stdio_client(server) as (reading, writing),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        return [tool.name for tool in (await session.list_tools()).tools]


async def test_the_command_line_connects_by_loopback(
    owner: Owner, running: Site, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "personal_server.cli", "connect", running.origin]
    options = ["--source", "bank", "--stream", "transactions:amount", "--loopback", "--no-browser"]
    cache = ["--cache-root", str(tmp_path / ".pdpp"), "--json"]
    process = await anyio.open_process([*command, *options, *cache], stderr=subprocess.PIPE)
    address = await offered_address(process, "/oauth/authorize?")
    await anyio.to_thread.run_sync(allow_as_asked, owner, address)
    out = await everything_of(process)
    assert process.returncode == 0
    assert json.loads(out)["kind"] == "client"


def allow_as_asked(owner: Owner, address: str) -> None:
    owner.driver.get(address)
    assert owner.sees("an app on this computer")
    owner.decide("approve")
    assert owner.sees("You can close this window")


async def run(*arguments: str) -> bytes:
    command = [sys.executable, "-m", "personal_server.cli", *arguments]
    return (await anyio.run_process(command)).stdout


async def test_the_doctor_finds_nothing_wrong_with_a_running_server(
    owner: Owner, running: Site
) -> None:
    command = [sys.executable, "-m", "personal_server.cli", "doctor", running.origin]
    process = await anyio.open_process(
        [*command, "--authorize", "--no-browser", "--json"], stderr=subprocess.PIPE
    )
    address = await offered_address(process)
    await anyio.to_thread.run_sync(pick_bank, owner, address)
    out = await everything_of(process)
    found = {one["check"]: one["state"] for one in json.loads(out)}
    assert {name for name, state in found.items() if state == "wrong"} == set()
    assert found["MCP tools/list"] == found["Refresh"] == found["Revoked token"] == "good"
    assert process.returncode == 0


def pick_bank(owner: Owner, address: str) -> None:
    owner.driver.get(address)
    owner.press(owner.find("main form button.primary"))
    assert owner.sees("A device asks")
    owner.tick("keep.0")
    owner.tick("stream.0.transactions")
    owner.decide("preview")
    assert owner.sees("30 records")
    owner.decide("approve")
    assert owner.sees("You can close this window")
