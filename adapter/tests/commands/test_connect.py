from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from adapter.tests.commands.desk import Desk
from adapter.tests.rs_client.provider import ORIGIN, PENDING, SERVER


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    monkeypatch.setenv("COLUMNS", "160")
    return Desk(tmp_path, capsys)


def test_connecting_shows_the_code_waits_and_keeps_the_credential(desk: Desk) -> None:
    desk.provider.polls = [PENDING]
    assert desk.run("connect", "me.example/mcp") == 0
    assert "WDJB-MJHT" in desk.err
    assert desk.visited == [f"{ORIGIN}/device?user_code=WDJB-MJHT"]
    assert desk.time.slept == [5, 5]
    credential = desk.cache.load(ORIGIN)
    assert (credential.token_kind, credential.refresh_token) == ("client", "pdpp_rt_1")
    assert "mail" in desk.out
    assert "2027-02-16" in desk.out
    assert "pdpp_" not in desk.out + desk.err


def test_a_host_starts_the_program_that_is_one_file_by_its_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDPP_PROGRAM", "/opt/pdpp-0.1.0")
    assert desk.run("connect", ORIGIN, "--json", "--no-browser") == 0
    server = json.loads(desk.out)["mcp_configuration"]["mcpServers"]["personal-data"]
    assert (server["command"], server["args"][0]) == ("/opt/pdpp-0.1.0", "mcp")


def test_the_result_names_a_ready_host_configuration(desk: Desk) -> None:
    assert desk.run("connect", ORIGIN, "--json", "--no-browser") == 0
    result = json.loads(desk.out)
    assert desk.visited == []
    assert f"{ORIGIN}/device" in desk.err
    assert {"10", "min"} <= set(desk.err.split())
    assert result["grant_id"] == "grt_1"
    server = result["mcp_configuration"]["mcpServers"]["personal-data"]
    command = Path(server["command"])  # a host starts it from a folder of its own
    assert command.is_absolute()
    assert command.is_file()
    assert command.name == "pdpp-mcp-server"
    assert server["args"] == [
        "--provider-url",
        ORIGIN,
        "--cache-root",
        str((desk.folder / ".pdpp").resolve()),
    ]


def test_a_selection_becomes_the_request(desk: Desk) -> None:
    options = ("--source", "mail", "--stream", "messages:id,subject", "--since", "2026-08-01")
    assert desk.run("connect", ORIGIN, *options, "--why", "answers", "--retention", "P30D") == 0
    (form,) = desk.provider.forms("/oauth/device_authorization")
    assert json.loads(form["authorization_details"]) == [
        {
            "type": "https://pdpp.dev/data-access",
            "source": {"id": "https://registry.pdpp.dev/connectors/mail"},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "purpose_description": "answers",
            "retention": {"max_duration": "P30D", "on_expiry": "delete"},
            "streams": [
                {
                    "name": "messages",
                    "fields": ["id", "subject"],
                    "time_range": {"since": "2026-08-01"},
                }
            ],
        }
    ]


def test_the_client_of_this_directory_is_used_again(desk: Desk) -> None:
    assert desk.run("connect", ORIGIN) == 0
    assert desk.run("connect", ORIGIN) == 0
    assert desk.provider.registered == 1


@pytest.mark.parametrize("way", ["--device", "--loopback"])
def test_a_client_that_the_server_forgot_is_registered_anew(desk: Desk, way: str) -> None:
    assert desk.run("connect", ORIGIN) == 0
    desk.provider.forgotten = "cli_1"
    desk.browse = lambda address: came_back(desk, address)  # type: ignore[method-assign]
    assert desk.run("connect", ORIGIN, way) == 0, desk.err
    assert desk.cache.load(ORIGIN).client_id == "cli_2"


def came_back(desk: Desk, address: str) -> None:
    """What a browser does after the decision, where it is led back to this computer."""
    if "/oauth/authorize" not in address:
        return
    *_, pushed = desk.provider.forms("/oauth/par")
    answer = {"code": "pdpp_ac_1", "state": pushed["state"], "iss": ORIGIN}
    httpx2.get(pushed["redirect_uri"], params=answer)


def test_connecting_by_loopback_pushes_the_request_and_checks_the_answer(desk: Desk) -> None:
    def decide(address: str) -> None:
        came_back(desk, address)
        desk.visited.append(address)

    desk.browse = decide  # type: ignore[method-assign]
    assert desk.run("connect", ORIGIN, "--loopback") == 0
    assert "request_uri=urn" in desk.visited[0]
    (form,) = desk.provider.forms("/oauth/token")
    assert form["code"] == "pdpp_ac_1"
    assert len(form["code_verifier"]) == 43
    assert "pdpp_ac_1" not in desk.out + desk.err


@pytest.mark.parametrize(
    ("changes", "code", "word"),
    [
        ({"polls": [{"error": "access_denied"}]}, 4, "approval_denied"),
        ({"polls": [PENDING] * 300}, 7, "approval_expired"),
        ({"down": True}, 69, "unavailable"),
        ({"changes": {SERVER: (200, {"issuer": "x"})}}, 69, "metadata_failure"),
        ({"schema_status": 401}, 3, "token_rejected"),
        ({"schema_status": 500}, 69, "metadata_failure"),
        ({"token_kind": "owner"}, 77, "owner_token_refused"),
    ],
)
def test_each_way_of_failing_has_its_exit_code_and_leaves_no_credential(
    desk: Desk, changes: dict[str, Any], code: int, word: str
) -> None:
    for name, value in changes.items():
        setattr(desk.provider, name, value)
    assert desk.run("connect", ORIGIN, "--json") == code
    assert json.loads(desk.out)["error"]["code"] == word
    assert desk.cache.providers() == ()


@pytest.mark.parametrize(
    "arguments",
    [
        ("http://me.example",),
        ("ftp://x",),
        (ORIGIN, "--device", "--loopback"),
        (ORIGIN, "--timeout", "0"),
        (ORIGIN, "--stream", "messages"),
        (),
    ],
)
def test_a_command_that_cannot_be_meant_is_usage(desk: Desk, arguments: tuple[str, ...]) -> None:
    assert desk.run("connect", *arguments) == 64
