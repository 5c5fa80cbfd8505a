from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from adapter.tests.rs_client.provider import ORIGIN, RESOURCE, SERVER, FakeProvider
from personal_server.cli.doctor import HOSTS
from personal_server.domain.hosts import CODEX
from server.tests.cli.owner_desk import OwnerDesk

CHALLENGE = f'Bearer resource_metadata="{ORIGIN}{RESOURCE}/mcp", scope="pdpp:read"'
TOOLS = ["schema", "query_records", "aggregate", "search", "fetch", "read_record_field"]


class WholeProvider(FakeProvider):
    """Also answers `/mcp`, the authorization page and preflight requests."""

    revoked = False
    reaches_documents = True

    def __init__(self) -> None:
        super().__init__()
        self.authorized: list[str] = []

    tools: list[str]
    challenge = CHALLENGE

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        path, bearer = request.url.path, request.headers.get("authorization")
        if self.down or path in self.changes:
            return super().handle(request)
        if request.method == "OPTIONS":
            return httpx2.Response(204, headers={"access-control-allow-origin": "*"})
        if path == "/healthz":
            return httpx2.Response(200, json={"status": "ok"})
        if path == f"{RESOURCE}/mcp":
            return httpx2.Response(200, json={"resource": f"{ORIGIN}/mcp"})
        if path == "/oauth/authorize":
            asked = request.url.params
            self.authorized.append(asked["client_id"])
            assert asked["prompt"] == "none"
            if asked["client_id"].startswith("https:") and not self.reaches_documents:
                return httpx2.Response(400, json={"error": "invalid_client"})
            back = f"{asked['redirect_uri']}?error=interaction_required"
            return httpx2.Response(303, headers={"location": back})
        if path == "/oauth/revoke":
            self.revoked = True
        if path == "/mcp":
            return self._mcp(request, bearer)
        return super().handle(request)

    def _mcp(self, request: httpx2.Request, bearer: str | None) -> httpx2.Response:
        if bearer is None or self.revoked:
            return httpx2.Response(401, json={}, headers={"www-authenticate": self.challenge})
        if request.method == "GET":
            return httpx2.Response(405)
        method = json.loads(request.read())["method"]
        tools = [{"name": name} for name in getattr(self, "tools", TOOLS)]
        result: dict[str, Any] = {"tools": tools} if method == "tools/list" else {}
        return httpx2.Response(200, json={"jsonrpc": "2.0", "id": 1, "result": result})


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> OwnerDesk:
    monkeypatch.setenv("COLUMNS", "160")
    return OwnerDesk(tmp_path, capsys, WholeProvider())


def findings(desk: OwnerDesk, *options: str, code: int) -> dict[str, Any]:
    assert desk.run("doctor", ORIGIN, "--json", *options) == code, desk.out
    return by_code(json.loads(desk.out))


def by_code(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Findings by what was tried; a host by its name."""
    return {one["check"] if one["code"] == "host" else one["code"]: one for one in found}


def test_a_sound_server_has_nothing_wrong_for_any_host(desk: OwnerDesk) -> None:
    found = findings(desk, code=0)
    assert {host.name for host in HOSTS} <= set(found)
    assert {one["state"] for one in found.values()} == {"good", "skipped"}


def test_with_access_it_tries_tools_refresh_and_revocation(desk: OwnerDesk) -> None:
    found = findings(desk, "--authorize", "--no-browser", code=0)
    for check in ("mcp_initialize", "mcp_tools", "token_refresh", "revoked_token"):
        assert found[check]["state"] == "good"
    assert desk.provider.forms("/oauth/token")
    assert "pdpp_" not in desk.out + desk.err


def test_each_finding_is_one_line_with_what_mends_it(desk: OwnerDesk) -> None:
    desk.provider.changes = {SERVER: (404, {})}
    found = findings(desk, "--no-authorize", code=69)["oauth_metadata"]
    assert desk.run("doctor", ORIGIN, "--no-authorize") == 69
    lines = desk.out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("✗ ")]
    assert lines[place].count(": ") >= 1, "the check, and what is wrong"
    assert lines[place + 1].startswith("    ")
    assert lines[place + 1].strip() == found["mend"]


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"/healthz": (502, {})}, "reachable", "502"),
    ({"/mcp": (421, {})}, "sign_in_challenge", "PDPP_PUBLIC_URL"),
    ({"/mcp": (421, {"error": {"reason": "port_missing"}})}, "sign_in_challenge", "$http_host"),
    ({"/mcp": (421, {"error": {"reason": []}})}, "sign_in_challenge", "PDPP_PUBLIC_URL"),
    ({"/v1/ingest/doctor": (413, {})}, "large_requests", "client_max_body_size"),
    ({"/mcp": (200, {})}, "sign_in_challenge", "200"),
    ({f"{RESOURCE}/mcp": (404, {})}, "mcp_metadata", "404"),
    ({"/.well-known/openid-configuration": (200, {})}, "openid_metadata", "openid"),
    ({RESOURCE: (200, {"resource": "https://other.example"})}, "oauth_metadata", "PDPP_PUBLIC_URL"),
    ({"/oauth/register": (500, {})}, "Cursor", "500"),
    ({"/oauth/authorize": (400, {})}, "Cursor", "400"),
]


@pytest.mark.parametrize(("changes", "check", "word"), FAULTS)
def test_each_fault_is_named_with_its_cause(
    desk: OwnerDesk, changes: dict[str, Any], check: str, word: str
) -> None:
    desk.provider.changes = changes
    found = findings(desk, code=69)[check]
    assert found["state"] == "wrong"
    assert word in found["said"] + found["mend"]


def test_a_server_that_is_down_is_one_finding(desk: OwnerDesk) -> None:
    desk.provider.down = True
    found = findings(desk, code=69)
    assert found["reachable"]["state"] == "wrong"
    assert list(found) == ["reachable"]


def test_a_refusal_of_access_is_a_finding(desk: OwnerDesk) -> None:
    desk.provider.polls = [{"error": "access_denied"}]
    found = findings(desk, "--authorize", "--no-browser", code=69)
    assert found["access"]["state"] == "wrong"


def test_a_missing_tool_is_a_finding(desk: OwnerDesk) -> None:
    assert isinstance(desk.provider, WholeProvider)
    desk.provider.tools = TOOLS[:5]
    found = findings(desk, "--authorize", "--no-browser", code=69)
    assert "5" in found["mcp_tools"]["said"].split()


def test_hosts_with_a_document_are_tried_with_it(desk: OwnerDesk) -> None:
    assert isinstance(desk.provider, WholeProvider)
    found = findings(desk, code=0)
    assert "document" in found["Codex"]["said"]
    assert CODEX.url in desk.provider.authorized
    registered = desk.provider.forms("/oauth/register")
    assert {sent["software_id"] for sent in registered} == {"pdpp-doctor"}


def test_a_server_that_refuses_a_document_is_told_so(desk: OwnerDesk) -> None:
    assert isinstance(desk.provider, WholeProvider)
    desk.provider.reaches_documents = False
    found = findings(desk, code=69)
    assert found["Claude Code"]["state"] == "wrong"
    assert "claude.ai" in found["Claude Code"]["mend"]
    assert found["Cursor"]["state"] == "good"


def test_hosts_register_where_no_documents_are_taken(desk: OwnerDesk) -> None:
    assert isinstance(desk.provider, WholeProvider)
    changed = {**desk.provider.metadata(), "client_id_metadata_document_supported": False}
    desk.provider.changes = {SERVER: (200, changed)}
    desk.provider.reaches_documents = False
    assert findings(desk, code=0)["Codex"]["state"] == "good"


def test_a_port_that_a_host_does_not_reach_is_named(
    desk: OwnerDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = replace(HOSTS[0], only_port=8443)
    monkeypatch.setattr("personal_server.cli.doctor.HOSTS", (elsewhere, *HOSTS[1:]))
    found = findings(desk, code=69)
    assert found[elsewhere.name]["fault"] == "port_unreachable"
    assert found[HOSTS[1].name]["state"] == "good"
