"""The stdio process: credentials, refusals, exit codes, and a clean standard output."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from adapter.tests.fake_rs import FakeRs
from adapter.tests.loopback import LoopbackServer
from adapter.tests.seed import world
from pdpp_mcp_server.server_metadata import METADATA_PATH
from tests.requirements.doors import (
    StdioWire,
    command,
    environment,
    greeting_request,
    token,
    write_cache,
)

Json = dict[str, Any]
hello = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting_request("2025-11-25")[1]}
)
six: list[tuple[str, Json]] = [
    ("schema", {}),
    ("query_records", {"stream": "messages"}),
    ("aggregate", {"stream": "messages", "metric": "count"}),
    ("search", {"query": "invoice", "limit": 3}),
    ("fetch", {"id": "cin_a/messages:m1"}),
    ("read_record_field", {"id": "cin_a/messages:m1", "field_path": "body"}),
]


class Behind:
    def __init__(self) -> None:
        self.rs: FakeRs = world()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.rs(scope, receive, send)


@pytest.fixture
def behind() -> Behind:
    return Behind()


@pytest.fixture
def provider(behind: Behind) -> Generator[str]:
    server = LoopbackServer(behind)
    yield server.url
    server.close()


def start(root: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("--cache-root", str(root), *arguments),
        input=hello + "\n",
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.req("4.1")
@pytest.mark.req("4.11")
def test_the_cached_bearer_goes_with_every_read(
    tmp_path: Path, behind: Behind, provider: str
) -> None:
    root = tmp_path / ".pdpp"
    write_cache(root, provider)
    wire = StdioWire(["--cache-root", str(root)], environment(PDPP_PROVIDER_URL=provider))
    greeting = wire.exchange(*greeting_request("2025-11-25"))
    assert greeting["serverInfo"]["name"] == "pdpp-mcp-server"
    for tool, arguments in six:
        result = wire.exchange("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError")
    assert wire.close() == 0
    paths = [request.path for request in behind.rs.requests]
    assert len(paths) == 8
    assert paths[0] == ("v1", "schema")
    assert [path for path in paths if path[0] != "v1"] == [METADATA_PATH]
    host = provider.split("://")[1]
    for request in behind.rs.requests:
        assert request.bearer == f"Bearer {token}"
        assert request.headers["host"] == host
        assert request.headers["user-agent"].startswith("pdpp-mcp-server/")
    assert behind.rs.requests[1].headers["pdpp-tool"] == "schema"


@pytest.mark.req("4.2")
def test_without_a_usable_token_the_process_ends_with_78(
    tmp_path: Path, behind: Behind, provider: str
) -> None:
    empty = start(tmp_path / "none", "--provider-url", provider)
    broken_root = tmp_path / "broken"
    write_cache(broken_root, provider).write_text("{not json")
    broken = start(broken_root, "--provider-url", provider)
    expired_root = tmp_path / "expired"
    write_cache(expired_root, provider, expires_at="2020-01-01T00:00:00Z")
    expired = start(expired_root, "--provider-url", provider)
    (tmp_path / "file").touch()
    no_directory = start(tmp_path / "file", "--provider-url", provider)
    for ended in (empty, broken, expired, no_directory):
        assert ended.returncode == 78
        assert ended.stdout == ""
    for ended in (empty, broken, expired):
        assert "pdpp connect" in ended.stderr
    for ended in (empty, expired):
        assert f"pdpp connect {provider}" in ended.stderr
    assert behind.rs.requests == []


@pytest.mark.req("0.6")
@pytest.mark.req("4.3")
@pytest.mark.parametrize("variable", ["PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE"])
@pytest.mark.parametrize("cached", [True, False])
def test_an_owner_credential_in_the_environment_ends_the_process(
    tmp_path: Path, behind: Behind, provider: str, variable: str, cached: bool
) -> None:
    root = tmp_path / ".pdpp"
    if cached:
        write_cache(root, provider, token_kind="client")
    ended = start(root, "--provider-url", provider, **{variable: "pdpp_at_owner_secret"})
    assert ended.returncode == 77
    assert ended.stdout == ""
    assert "pdpp_at_owner_secret" not in ended.stderr
    assert behind.rs.requests == []


@pytest.mark.req("0.6")
def test_a_cached_owner_credential_ends_the_process_before_a_record_is_read(
    tmp_path: Path, behind: Behind, provider: str
) -> None:
    named = tmp_path / "named"
    write_cache(named, provider, token_kind="owner")
    ended = start(named, "--provider-url", provider)
    assert ended.returncode == 77
    assert behind.rs.requests == []
    unnamed = tmp_path / "unnamed"
    write_cache(unnamed, provider)
    behind.rs.kind = "owner"
    wire = StdioWire(["--cache-root", str(unnamed)], environment())
    wire.exchange(*greeting_request("2025-11-25"))
    call = {"name": "query_records", "arguments": {"stream": "messages"}}
    wire.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call})
    assert wire.process.wait(30) == 77
    assert [request.path for request in behind.rs.requests] == [("v1", "schema")]
    wire.close()


@pytest.mark.req("4.9")
def test_standard_output_carries_messages_only(
    tmp_path: Path, behind: Behind, provider: str
) -> None:
    root = tmp_path / ".pdpp"
    for option in ("--help", "--version"):
        asked = start(root, option)
        assert asked.returncode == 0
        assert asked.stdout == ""
        assert asked.stderr
    wrong = start(root, "--toolset", "full")
    assert (wrong.returncode, wrong.stdout) == (64, "")
    assert wrong.stderr
    write_cache(root, provider, token_kind="client")
    wire = StdioWire(["--cache-root", str(root)], environment(PDPP_LOG_LEVEL="debug"))
    wire.exchange(*greeting_request("2025-11-25"))
    for tool, arguments in [*six, ("fetch", {"id": "bad"}), ("search", {})]:
        wire.exchange("tools/call", {"name": tool, "arguments": arguments})
    assert wire.process.stdin is not None
    wire.process.stdin.close()
    assert wire.process.stdout is not None
    with wire.process.stdout as stdout:
        rest = wire.buffer + stdout.read()
    assert wire.process.wait(30) == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())


@pytest.mark.req("0.2")
def test_no_option_selects_another_surface(tmp_path: Path) -> None:
    text = start(tmp_path, "--help").stderr.lower()
    for option in ("--provider-url", "--cache-root", "--server-name"):
        assert option in text
    for word in ("profile", "toolset", "surface", "owner", "--tools"):
        assert word not in text


def test_several_providers_need_a_choice(tmp_path: Path) -> None:
    write_cache(tmp_path, "http://127.0.0.1:1")
    write_cache(tmp_path, "http://127.0.0.1:2")
    assert start(tmp_path).returncode == 64


@pytest.mark.req("4.11")
def test_the_first_message_decides_the_era(tmp_path: Path, behind: Behind, provider: str) -> None:
    root = tmp_path / ".pdpp"
    write_cache(root, provider, token_kind="client")
    wire = StdioWire(["--cache-root", str(root)], environment())
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    found = wire.exchange("server/discover", {"_meta": meta})
    assert "2026-07-28" in found["supportedVersions"]
    assert found["instructions"]
    call = {"name": "search", "arguments": {"query": "lisbon"}, "_meta": meta}
    result = wire.exchange("tools/call", call)
    assert result["resultType"] == "complete"
    assert result["structuredContent"]["results"][0]["id"] == "cin_a/messages:m8"
    assert wire.close() == 0
