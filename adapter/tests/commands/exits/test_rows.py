"""Each row of the table of exit codes, reached by a command as a person would reach it.

The rows of the stdio adapter are reached in tests/requirements/test_stdio_process.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from adapter.tests.commands.desk import Desk
from adapter.tests.rs_client.provider import ORIGIN, PENDING, FakeProvider


class Broken(FakeProvider):
    """Fails in a way that nobody foresaw."""

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        raise ValueError("pdpp_at_secret")


class Interrupted(FakeProvider):
    """The person presses Ctrl-C meanwhile."""

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        raise KeyboardInterrupt


def refused(status: int, code: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"code": code, "message": "m"}}


def oauth(status: int, code: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": code}


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(tmp_path, capsys)


CURRENT = "/grants/current"
DEVICE = "/oauth/device_authorization"

STATUS_ROWS = [
    (refused(401, "invalid_token"), 3, "token_rejected"),
    (refused(403, "permission_error"), 4, "permission_error"),
    (refused(403, "grant_revoked"), 4, "grant_revoked"),
    (refused(403, "grant_expired"), 4, "grant_expired"),
    (refused(404, "not_found"), 5, "not_found"),
    (refused(409, "ambiguous_connection"), 6, "ambiguous_connection"),
    (refused(429, "rate_limit_exceeded"), 69, "unavailable"),
    (refused(503, "storage_unavailable"), 69, "unavailable"),
]


@pytest.mark.parametrize(("answer", "number", "word"), STATUS_ROWS)
def test_what_the_server_answers_decides_the_exit_code_of_status(
    desk: Desk, answer: tuple[int, dict[str, Any]], number: int, word: str
) -> None:
    assert desk.run("connect", ORIGIN) == 0
    desk.provider.changes = {CURRENT: answer}
    assert desk.run("status", ORIGIN, "--json") == number
    assert json.loads(desk.out)[0]["error"]["code"] == word


CONNECT_ROWS = [
    ({"polls": [{"error": "access_denied"}]}, 4, "approval_denied"),
    ({"polls": [{"error": "expired_token"}]}, 7, "approval_expired"),
    ({"polls": [PENDING] * 200}, 7, "approval_expired"),
    ({"down": True}, 69, "unavailable"),
    ({"changes": {DEVICE: refused(429, "rate_limit_exceeded")}}, 69, "unavailable"),
    ({"changes": {DEVICE: oauth(500, "server_error")}}, 69, "unavailable"),
    ({"token_kind": "owner"}, 77, "owner_token_refused"),
]


@pytest.mark.parametrize(("changes", "number", "word"), CONNECT_ROWS)
def test_what_becomes_of_a_request_decides_the_exit_code_of_connect(
    desk: Desk, changes: dict[str, Any], number: int, word: str
) -> None:
    for name, value in changes.items():
        setattr(desk.provider, name, value)
    assert desk.run("connect", ORIGIN, "--json") == number
    assert json.loads(desk.out)["error"]["code"] == word


def test_what_nobody_foresaw_is_1_and_tells_nothing_of_itself(desk: Desk) -> None:
    desk.provider = Broken()
    assert desk.run("connect", ORIGIN, "--json") == 1
    error = json.loads(desk.out)["error"]
    assert error["code"] == "internal_error"
    assert ".py:" in error["message"]  # a place in the program, which a report can name
    assert "secret" not in desk.out + desk.err


def test_the_adapter_ends_with_1_where_nobody_foresaw_it() -> None:
    script = (
        "from pdpp_mcp_server.commands import mcp as adapter;"
        "adapter._settings = lambda: {}['pdpp_at_secret']; adapter.run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "internal_error" in done.stderr
    assert "secret" not in done.stderr


def test_an_interrupt_is_130(desk: Desk) -> None:
    desk.provider = Interrupted()
    assert desk.run("connect", ORIGIN) == 130


@pytest.mark.parametrize(
    ("address", "word"), [("ftp://me.example", "invalid_provider_url"), ("--nothing", "usage")]
)
def test_what_cannot_be_meant_is_64(desk: Desk, address: str, word: str) -> None:
    assert desk.run("connect", address, "--json") == 64
    assert json.loads(desk.out)["error"]["code"] == word


def test_a_server_that_cannot_be_connected_to_is_69(desk: Desk) -> None:
    metadata = desk.provider.metadata()
    metadata.pop("device_authorization_endpoint")
    desk.provider.changes = {"/.well-known/oauth-authorization-server": (200, metadata)}
    assert desk.run("connect", ORIGIN, "--json") == 69
    assert json.loads(desk.out)["error"]["code"] == "connect_not_supported"


def _gone(path: Path) -> None:
    path.unlink()


def _broken(path: Path) -> None:
    path.write_text("{")


def _linked(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _of_another(path: Path) -> None:
    path.write_text(path.read_text().replace(ORIGIN, "https://else.example"))


def _expired(path: Path) -> None:
    document = json.loads(path.read_text())
    document["credential"] |= {"expires_at": "2020-01-01T00:00:00Z", "refresh_token": None}
    path.write_text(json.dumps(document))


CREDENTIAL_ROWS: list[tuple[Callable[[Path], None], str]] = [
    (_gone, "not_connected"),
    (_broken, "credential_invalid"),
    (_linked, "credential_insecure"),
    (_of_another, "credential_mismatch"),
    (_expired, "credential_expired"),
]


@pytest.mark.parametrize(("spoil", "word"), CREDENTIAL_ROWS)
def test_a_credential_that_cannot_be_used_is_78(
    desk: Desk, spoil: Callable[[Path], None], word: str
) -> None:
    assert desk.run("connect", ORIGIN) == 0
    spoil(desk.cache.path(ORIGIN))
    assert desk.run("token", ORIGIN) == 78
    assert f"pdpp: {word}: " in desk.err
    assert "pdpp_at" not in desk.out + desk.err


def test_nobody_is_asked_for_what_could_not_be_kept(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert desk.run("connect", ORIGIN, "--cache-root", str(tmp_path / "file")) == 78
    assert "pdpp: credential_insecure: " in desk.err
    assert desk.provider.asked == []
