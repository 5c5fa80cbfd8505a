"""Clients connect from nothing, and the owner decides in a real browser with scripts off."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from mcp import ClientSession, StdioServerParameters, stdio_client
from selenium.webdriver.common.keys import Keys

from pdpp_mcp_server.rs_client.authorization_flows import listening
from tests.browser.agent import TOOLS, Agent, live_through
from tests.browser.site import Owner, Site

pytestmark = [pytest.mark.browser, pytest.mark.anyio]
ALLOWED = 'main[data-state="allowed"]'


async def test_the_sdks_client_connects_reads_refreshes_and_asks_again_after_the_end(
    owner: Owner, running: Site
) -> None:
    with listening() as listener:
        first, last = await live_through(Agent(owner, listener))
    kept: Any = owner.driver.get_cookies()  # pyright: ignore[reportUnknownVariableType]
    cookies = [str(cookie["value"]) for cookie in kept]
    tokens = [t for token in (first, last) for t in (token.access_token, str(token.refresh_token))]
    assert kept_on_disk(running, [*cookies, *tokens]) == []


def kept_on_disk(running: Site, secrets: list[str]) -> list[str]:
    """The secrets that some file of the data directory holds in clear."""
    files = [path.read_bytes() for path in (running.folder / "data").rglob("*") if path.is_file()]
    return [secret for secret in secrets if any(secret.encode() in file for file in files)]


async def test_the_command_line_connects_by_device_code_and_serves(
    owner: Owner, running: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where the key of the credential lies
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
    owner.open(address)
    owner.find("#user_code").send_keys(Keys.ENTER)
    assert owner.shows("#more-who[open]"), "a device tells its facts at once"
    assert owner.figure() == 30
    owner.find('.decide button[value="approve"]').send_keys(Keys.ENTER)
    assert owner.shows(ALLOWED)


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
    owner: Owner, running: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
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
    owner.open(address)
    assert owner.shows('[data-field="leads-to"]')
    owner.decide("approve")
    assert owner.shows("#done")


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
    found = json.loads(out)
    assert [one for one in found if one["state"] == "wrong"] == []
    good = {one["code"] for one in found if one["state"] == "good"}
    assert {"mcp_tools", "token_refresh", "revoked_token"} <= good
    assert process.returncode == 0


def pick_bank(owner: Owner, address: str) -> None:
    owner.open(address)
    owner.press(owner.find("main form button.primary"))
    assert owner.shows("#more-who[open]"), "a device tells its facts at once"
    owner.tick("keep.0")
    owner.tick("stream.0.transactions")
    owner.preview()
    assert owner.figure() == 30
    owner.decide("approve")
    assert owner.shows(ALLOWED)
