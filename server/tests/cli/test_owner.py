from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adapter.tests.rs_client.provider import ORIGIN
from pdpp_kernel.errors import SignInFailed
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from personal_server.granting.owner_sessions import Browser
from server.tests.cli.owner_desk import OwnerDesk


def test_a_printed_link_signs_in_once(terminal: Any) -> None:
    assert terminal.run("owner", "link") == 0
    link = terminal.out.strip()
    assert link.startswith("http://127.0.0.1:7662/owner/enter?t=pdpp_ol_")
    sign_in = terminal.house.store.sign_in
    assert sign_in.session(sign_in.enter_by_link(link.partition("t=")[2], Browser())) is not None


def test_a_link_leads_to_the_server_that_runs(terminal: Any) -> None:
    """What has the port of the settings may be a program of another user, who would sign in."""
    terminal.served_at = "http://127.0.0.1:7801"
    assert terminal.run("owner", "link") == 0
    assert terminal.out.startswith("http://127.0.0.1:7801/owner/enter?t=pdpp_ol_")
    assert terminal.run("owner", "link", "127.0.0.1:7662") == 64


def test_a_link_that_nothing_would_answer_is_not_printed(terminal: Any) -> None:
    terminal.is_running = False
    assert terminal.run("owner", "link") == 69
    assert "pdpp_ol_" not in terminal.out
    assert "pdpp serve" in terminal.err


def test_over_ssh_the_way_to_the_link_is_told(terminal: Any) -> None:
    terminal.patch.setenv("SSH_CONNECTION", "198.51.100.7 50022 192.0.2.4 22")
    assert terminal.run("owner", "link") == 0
    assert "ssh -N -L 7662:127.0.0.1:7662" in terminal.err
    assert terminal.out.startswith("http://127.0.0.1:7662/owner/enter?t=")


@pytest.mark.parametrize("name", ["localhost", "[::1]"])
def test_a_link_can_be_for_another_name_of_this_computer(terminal: Any, name: str) -> None:
    assert terminal.run("owner", "link", f"{name}:7662") == 0
    assert terminal.out.startswith(f"http://{name}:7662/owner/enter?t=")


@pytest.mark.parametrize("address", ["localhost:7663", "https://evil.example", "nonsense/x"])
def test_a_link_is_never_for_another_server(terminal: Any, address: str) -> None:
    assert terminal.run("owner", "link", address) == 64
    assert "pdpp_ol_" not in terminal.out


def test_the_password_is_read_from_standard_input_without_a_terminal(terminal: Any) -> None:
    terminal.types(None)
    terminal.patch.setattr("sys.stdin.readline", lambda: "correct horse battery\n")
    assert terminal.run("owner", "password") == 0
    sign_in = terminal.house.store.sign_in
    assert sign_in.enter_by_password("correct horse battery", Browser())
    assert "correct" not in terminal.out + terminal.err


def test_a_password_can_be_removed_and_then_opens_nothing(terminal: Any) -> None:
    terminal.types(None)
    terminal.patch.setattr("sys.stdin.readline", lambda: "correct horse battery\n")
    assert terminal.run("owner", "password") == 0
    sign_in = terminal.house.store.sign_in
    cookie = sign_in.enter_by_password("correct horse battery", Browser())
    assert terminal.run("owner", "password", "--remove") == 0
    assert not sign_in.has_password()
    assert sign_in.session(cookie) is None
    with pytest.raises(SignInFailed):
        sign_in.enter_by_password("correct horse battery", Browser())


def test_a_short_password_is_usage(terminal: Any) -> None:
    terminal.patch.setattr("sys.stdin.readline", lambda: "short\n")
    assert terminal.run("owner", "password") == 64
    assert not terminal.house.store.sign_in.has_password()


def test_signing_out_ends_every_session_and_must_be_meant(terminal: Any) -> None:
    sign_in = terminal.house.store.sign_in
    cookie = sign_in.enter_by_link(sign_in.make_link(), Browser())
    assert terminal.run("owner", "sign-out") == 64
    assert sign_in.session(cookie) is not None
    assert terminal.run("owner", "sign-out", "--all") == 0
    assert sign_in.session(cookie) is None


def test_the_owner_profile_stands_apart_and_is_given_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk = OwnerDesk(tmp_path, capsys)
    assert desk.run("owner", "login", ORIGIN) == 0
    kept = CredentialCache(desk.folder / "home", folder="owners").load(ORIGIN)
    assert kept.token_kind == "owner"
    assert desk.cache.providers() == ()
    assert desk.run("owner", "logout", ORIGIN) == 0
    assert desk.provider.forms("/oauth/revoke")[0]["token"] == "pdpp_rt_1"
    assert desk.run("owner", "logout", ORIGIN) == 78
