"""How the stdio process finds its server and credential, and what becomes of one that ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from adapter.tests.fake_rs import FakeRs
from adapter.tests.fake_wire import Answer, error_answer, request_of, write_answer
from adapter.tests.loopback import LoopbackServer
from adapter.tests.seed import world
from tests.requirements.doors import (
    StdioWire,
    command,
    environment,
    greeting_request,
    token,
    write_cache,
)

Json = dict[str, Any]
renewed = "pdpp_at_renewed"
search: Json = {"name": "search", "arguments": {"query": "lisbon"}}


@dataclass
class Provider:
    """A resource server with a token endpoint beside it."""

    url: str = ""
    rs: FakeRs = field(default_factory=world)
    renewals: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = request_of(scope)
        if request.path[0] == "v1":
            await self.rs(scope, receive, send)
            return
        body = await receive()
        await write_answer(self.answer(request.path, body["body"]), request, send)

    def answer(self, path: tuple[str, ...], body: bytes) -> Answer:
        if path[0] == ".well-known":
            endpoint = f"{self.url}/oauth/token"
            return Answer(200, {"issuer": self.url, "token_endpoint": endpoint})
        self.renewals.append(dict(parse_qsl(body.decode())))
        pair = {"access_token": renewed, "refresh_token": "pdpp_rt_next", "token_type": "Bearer"}
        return Answer(200, {**pair, "expires_in": 3_600, "scope": "pdpp:read"})


@pytest.fixture
def provider() -> Generator[Provider]:
    behind = Provider()
    server = LoopbackServer(behind)
    behind.url = server.url
    yield behind
    server.close()


def greeted(arguments: list[str], **env: str) -> tuple[StdioWire, Json]:
    wire = StdioWire(arguments, environment(**env))
    return wire, wire.exchange(*greeting_request("2025-11-25"))


def test_flags_win_over_the_environment_and_that_over_the_defaults(
    tmp_path: Path, provider: Provider
) -> None:
    write_cache(tmp_path / "cache", provider.url, token_kind="client")
    write_cache(tmp_path / "cache", "http://127.0.0.1:1", token_kind="client")
    env = {"PDPP_CACHE_ROOT": str(tmp_path / "cache"), "PDPP_PROVIDER_URL": provider.url}
    for arguments, extra, name in (
        ([], {}, "pdpp-mcp-server"),
        ([], {"PDPP_MCP_SERVER_NAME": "mine"}, "mine"),
        (["--server-name", "flagged"], {"PDPP_MCP_SERVER_NAME": "mine"}, "flagged"),
    ):
        wire, greeting = greeted(arguments, **env, **extra)
        info = greeting["serverInfo"]
        assert info["name"] == name
        assert info["version"] == version("pdpp-personal-server")
        assert info["title"] == "Personal data"
        assert "icons" not in info
        assert not wire.exchange("tools/call", search).get("isError")
        assert wire.close() == 0
    assert len(provider.rs.requests) == 3


def test_the_cache_is_that_of_the_working_directory_by_default(
    tmp_path: Path, provider: Provider
) -> None:
    write_cache(tmp_path / ".pdpp", provider.url, token_kind="client")
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    hello = json.dumps({**message, "params": greeting_request("2025-11-25")[1]})
    for folder, code in ((tmp_path, 0), (tmp_path / ".pdpp", 78)):
        ended = subprocess.run(
            command(),
            input=hello + "\n",
            env=environment(),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ended.returncode == code
        assert bool(ended.stdout) is (code == 0)
        assert ("pdpp connect <provider-url>" in ended.stderr) is (code == 78)


@pytest.mark.req("4.2")
def test_a_cache_that_points_elsewhere_is_not_used(tmp_path: Path, provider: Provider) -> None:
    held = write_cache(tmp_path, provider.url, token_kind="client")
    held.symlink_to(held.rename(tmp_path / "elsewhere"))
    ended = subprocess.run(
        command("--cache-root", str(tmp_path)),
        stdin=subprocess.DEVNULL,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (78, "")
    assert token not in ended.stderr
    assert provider.rs.requests == []


@pytest.mark.req("4.2")
def test_an_expired_token_is_renewed_and_served(tmp_path: Path, provider: Provider) -> None:
    held = {"refresh_token": "pdpp_rt_held", "expires_at": "2020-01-01T00:00:00Z"}
    path = write_cache(tmp_path, provider.url, token_kind="client", **held)
    wire, _ = greeted(["--cache-root", str(tmp_path)])
    for _ in range(2):
        assert not wire.exchange("tools/call", search).get("isError")
    assert wire.close() == 0
    assert [renewal["refresh_token"] for renewal in provider.renewals] == ["pdpp_rt_held"]
    assert {request.bearer for request in provider.rs.requests} == {f"Bearer {renewed}"}
    assert json.loads(path.read_text())["credential"]["refresh_token"] == "pdpp_rt_next"


@pytest.mark.req("0.5")
def test_a_refused_token_without_renewal_is_told_once(tmp_path: Path, provider: Provider) -> None:
    provider.rs.script = lambda _: error_answer(401, "invalid_token")
    write_cache(tmp_path, provider.url, token_kind="client")
    wire, _ = greeted(["--cache-root", str(tmp_path)])
    error = wire.exchange("tools/call", search)["structuredContent"]["error"]
    assert (error["code"], error["http_status"]) == ("invalid_token", 401)
    assert f"pdpp connect {provider.url}" in error["message"]
    assert len(provider.rs.requests) == 1
    assert wire.close() == 0


def test_a_server_that_is_away_is_asked_again(tmp_path: Path) -> None:
    behind = Provider()
    server = LoopbackServer(behind)
    write_cache(tmp_path, server.url)
    server.close()
    wire, _ = greeted(["--cache-root", str(tmp_path)])
    for _ in range(2):
        error = wire.exchange("tools/call", search)["structuredContent"]["error"]
        assert error["code"] == "rs_unreachable"
        assert error["next_call"] == {"tool": "search", "arguments": {"query": "lisbon"}}
    assert wire.close() == 0


@pytest.mark.parametrize("url", ["not a url", "ftp://me.example", "http://me.example/path?x=1"])
def test_an_address_that_cannot_be_meant_is_a_usage_error(tmp_path: Path, url: str) -> None:
    ended = subprocess.run(
        command("--cache-root", str(tmp_path), "--provider-url", url),
        stdin=subprocess.DEVNULL,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (64, "")
    assert ended.stderr
