"""A credential that is bound to a key, from `pdpp connect` to the stdio adapter, over the wire."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import cyclopts
import httpx2
import pytest

from adapter.tests.rs_client.provider import FakeTime
from pdpp_mcp_server.commands.connect import CommandContext, connect_command
from pdpp_mcp_server.commands.exits import run_app
from pdpp_mcp_server.commands.status import add_cached_access
from pdpp_mcp_server.rs_client.authorization_flows import PollWait
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.discovery import network_exchange
from pdpp_mcp_server.rs_client.proof_keys import KeyRing
from personal_server.storage.authorization_rows import TokenRow
from server.tests.app.whole import Whole, whole
from server.tests.console.browsing import allow
from tests.browser.chromium import served
from tests.ports import free_port
from tests.requirements.doors import StdioWire, command, environment, greeting_request


@dataclass
class Desk:
    """A computer whose user connects, on a real port; the owner answers at once."""

    folder: Path
    origin: str
    whole: Whole
    capture: pytest.CaptureFixture[str]
    time: FakeTime = field(default_factory=FakeTime)
    out: str = ""
    err: str = ""

    @property
    def root(self) -> Path:
        return self.folder / "work" / ".pdpp"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def keys(self) -> list[Path]:
        return sorted((self.home / ".pdpp" / "keys").glob("*.json"))

    def ring(self) -> KeyRing:
        return KeyRing(CredentialCache(self.home / ".pdpp", folder="keys"))

    def decide(self, address: str) -> None:
        owner, parts = self.whole.owner, urlsplit(address)
        page = owner.get(f"{parts.path}?{parts.query}")
        if parts.path == "/oauth/authorize":
            handle = page.headers["location"]
            answer = allow(owner, handle).headers["location"]
            threading.Thread(target=httpx2.get, args=(answer,), daemon=True).start()
            return
        code = parts.query.removeprefix("user_code=")
        allow(owner, owner.submit(page, "/device", user_code=code).headers["location"])

    def run(self, *arguments: str) -> int:
        network = network_exchange()
        around = CommandContext(
            default_cache=lambda: self.root,
            exchange=lambda: network,
            open_browser=self.decide,
            keys=self.ring,
            waiting=PollWait(self.time.sleep, self.time.monotonic),
        )
        app = cyclopts.App(name="pdpp")
        app.command(connect_command(around), name="connect")
        add_cached_access(app, around)
        code = run_app(app, arguments)
        network.http.close()
        self.out, self.err = self.capture.readouterr()
        return code

    def connect(self, *options: str) -> dict[str, Any]:
        asked = ("--source", "bank", "--stream", "transactions")
        assert self.run("connect", self.origin, *asked, *options, "--json") == 0, self.err
        return CredentialCache(self.root).load(self.origin).document

    def adapter(self, root: Path | None = None, home: Path | None = None) -> StdioWire:
        cache = str(root or self.root)
        arguments = ["--provider-url", self.origin, "--cache-root", cache]
        return StdioWire(arguments, environment(HOME=str(home or self.home)))


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Generator[Desk]:
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    # Its clock stands still, days away from the client's: every proof needs a nonce.
    with (
        whole(tmp_path, origin, public_url=origin, bind_port=port) as made,
        served(made.server.app, port),
    ):
        yield Desk(tmp_path, origin, made, capsys)


def listed(wire: StdioWire) -> Any:
    """A page of records, as the adapter gives it."""
    wire.exchange(*greeting_request("2025-11-25"))
    asked = {"name": "query_records", "arguments": {"stream": "transactions"}}
    return wire.exchange("tools/call", asked)


@pytest.mark.parametrize("way", ["--device", "--loopback"])
def test_connecting_binds_the_credential_to_a_key_of_ones_own(desk: Desk, way: str) -> None:
    document = desk.connect(way)
    credential = document["credential"]
    [key] = desk.keys
    assert credential["token_type"] == "DPoP"
    assert key.stem == credential["dpop_jkt"]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    secret = json.loads(key.read_text())["d"]
    assert secret not in json.dumps(document) + desk.out + desk.err
    [row] = desk.whole.owner_rows(TokenRow)
    assert row.jkt == key.stem
    assert desk.run("status", desk.origin, "--json") == 0
    wire = desk.adapter()
    assert not listed(wire).get("isError")
    assert wire.close() == 0


def test_a_bound_credential_is_renewed_by_its_key(desk: Desk) -> None:
    document = desk.connect()
    document["credential"]["expires_at"] = "2020-01-01T00:00:00Z"
    CredentialCache(desk.root).save(document)
    wire = desk.adapter()
    assert not listed(wire).get("isError")
    assert wire.close() == 0
    renewed = CredentialCache(desk.root).load(desk.origin)
    assert renewed.access_token != document["credential"]["access_token"]
    assert renewed.jkt == desk.keys[0].stem


def test_a_stolen_cache_is_worth_nothing_without_the_key(desk: Desk) -> None:
    token = desk.connect()["credential"]["access_token"]
    stolen = shutil.copytree(desk.root, desk.folder / "thief" / ".pdpp")
    ended = subprocess.run(
        command("--provider-url", desk.origin, "--cache-root", str(stolen)),
        input="",
        env=environment(HOME=str(desk.folder / "thief")),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (78, "")
    assert "pdpp connect" in ended.stderr
    for path in ("/v1/schema", "/mcp", "/grants/current"):
        answer = httpx2.get(desk.origin + path, headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_token")
    assert desk.run("status", desk.origin, "--cache-root", str(stolen), "--json") == 0
    for key in desk.keys:
        key.unlink()
    assert desk.run("status", desk.origin, "--json") == 78


def test_the_hosted_adapter_asks_for_one_proof_a_call(desk: Desk) -> None:
    desk.connect()
    credential = CredentialCache(desk.root).load(desk.origin)
    key, url = desk.ring().of(credential), f"{desk.origin}/mcp"
    assert key is not None
    call = {"name": "query_records", "arguments": {"stream": "transactions"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accepted = {"accept": "application/json, text/event-stream"}

    def send() -> httpx2.Response:
        headers = {**accepted, **key.headers("POST", url, credential.access_token)}
        return httpx2.post(url, json=asked, headers=headers)

    needs_nonce = send()
    assert needs_nonce.json()["error"]["code"] == "use_dpop_nonce"
    assert key.learn(needs_nonce.status_code, needs_nonce.headers)
    result = send().json()["result"]
    assert not result.get("isError")
    assert result["structuredContent"]["data"]["data"]
    bearer = {**accepted, "authorization": f"Bearer {credential.access_token}"}
    assert httpx2.post(url, json=asked, headers=bearer).json()["error"]["code"] == "invalid_token"


def test_a_foreign_key_under_the_name_of_ours_is_not_taken(desk: Desk) -> None:
    desk.connect()
    [key] = desk.keys
    first = key.read_bytes()
    desk.connect()
    assert desk.keys != [key]
    [other] = desk.keys
    other.write_bytes(first)
    assert desk.run("status", desk.origin, "--json") == 78


def test_a_bearer_is_taken_where_one_is_asked_for(desk: Desk) -> None:
    document = desk.connect("--bearer")
    assert document["credential"]["token_type"] == "Bearer"
    assert "dpop_jkt" not in document["credential"]
    assert desk.keys == []
    wire = desk.adapter()
    assert not listed(wire).get("isError")
    assert wire.close() == 0


def test_a_token_that_is_bound_says_so_when_it_is_printed(desk: Desk) -> None:
    desk.connect()
    assert desk.run("token", desk.origin) == 0
    assert desk.err.strip()
    assert desk.out.startswith("pdpp_at_")


def test_the_key_goes_with_the_credential(desk: Desk) -> None:
    desk.connect()
    assert desk.keys
    assert desk.run("disconnect", desk.origin) == 0
    assert desk.keys == []
