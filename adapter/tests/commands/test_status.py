from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapter.tests.commands.desk import NOW_NS, Desk
from adapter.tests.rs_client.provider import ORIGIN


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    monkeypatch.setenv("COLUMNS", "160")
    made = Desk(tmp_path, capsys)
    assert made.run("connect", ORIGIN) == 0
    return made


def test_the_status_says_what_a_credential_stands_for(desk: Desk) -> None:
    assert desk.run("status") == 0
    for word in (
        ORIGIN,
        "active",
        "messages",
        "id, subject",
        "from 2026-08-23",
        "2027-02-16",
    ):
        assert word in desk.out
    assert desk.run("status", ORIGIN, "--json") == 0
    assert json.loads(desk.out)[0]["status"] == "active"
    assert "pdpp_at" not in desk.out


def test_the_status_fits_a_terminal_and_breaks_no_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    fields = [f"quite_a_long_field_name_{number}" for number in range(12)]
    grant = {
        "status": "active",
        "connector_key": "mail",
        "access_mode": "continuous",
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "expires_at": None,
        "streams": [{"name": "messages", "fields": fields}],
    }
    gone = [{"connector_key": "bank", "reason": "grant_revoked"}]
    body = {"status": "active", "grants": [grant], "unavailable_connections": gone}
    desk.provider.current = (200, body)
    assert desk.run("status") == 0
    assert max(len(line) for line in desk.out.splitlines()) <= 80
    assert set(fields) <= set(desk.out.replace(",", " ").split())
    assert "grant_revoked" in desk.out


def test_a_rejected_credential_is_told_with_what_to_do(desk: Desk) -> None:
    desk.provider.current = (401, {"error": {"code": "invalid_token"}})
    assert desk.run("status") == 3
    assert "token_rejected" in desk.out
    assert "pdpp connect" in desk.out


def test_an_ended_grant_is_still_told(desk: Desk) -> None:
    desk.provider.current = (200, {"client_name": "pdpp", "status": "revoked", "grants": []})
    assert desk.run("status") == 0
    assert "revoked" in desk.out


def test_a_server_that_is_down_is_told(desk: Desk) -> None:
    desk.provider.down = True
    assert desk.run("status", "--json") == 69
    assert json.loads(desk.out)[0]["error"]["code"] == "unavailable"


def test_without_a_credential_nothing_is_connected(desk: Desk) -> None:
    assert desk.run("disconnect", ORIGIN, "--local") == 0
    assert desk.run("status") == 78
    assert desk.run("status", ORIGIN) == 78
    assert desk.run("token", ORIGIN) == 78
    assert desk.run("disconnect", ORIGIN) == 78


def test_a_token_is_printed_and_refreshed_first_when_it_is_about_to_end(desk: Desk) -> None:
    assert desk.run("token", ORIGIN) == 0
    assert desk.out == "pdpp_at_1\n"
    desk.now_ns = NOW_NS + 3_541 * 10**9
    desk.provider.polls = [desk.provider.tokens(2)]
    assert desk.run("token", ORIGIN) == 0
    assert desk.out == "pdpp_at_2\n"
    assert desk.cache.load(ORIGIN).refresh_token == "pdpp_rt_2"


def test_a_refresh_that_is_refused_is_expired(desk: Desk) -> None:
    desk.now_ns = NOW_NS + 4_000 * 10**9
    desk.provider.polls = [{"error": "invalid_grant"}]
    assert desk.run("token", ORIGIN) == 78
    assert "credential_expired" in desk.err
    assert desk.cache.load(ORIGIN).access_token == "pdpp_at_1"


def test_disconnecting_gives_the_refresh_token_back_and_forgets(desk: Desk) -> None:
    assert desk.run("disconnect", ORIGIN) == 0
    assert desk.provider.forms("/oauth/revoke") == [{"token": "pdpp_rt_1", "client_id": "cli_1"}]
    assert desk.cache.providers() == ()


def test_a_server_that_cannot_be_asked_keeps_the_credential_unless_local(desk: Desk) -> None:
    desk.provider.down = True
    assert desk.run("disconnect", ORIGIN) == 69
    assert f"pdpp disconnect {ORIGIN} --local" in desk.err
    assert desk.cache.providers() == (ORIGIN,)
    assert desk.run("disconnect", ORIGIN, "--local", "--json") == 0
    assert json.loads(desk.out)["disconnected"] is True


def test_an_owner_credential_in_the_cache_is_refused(desk: Desk) -> None:
    document = desk.cache.load(ORIGIN).document
    document["role"] = "owner"
    document["credential"]["token_kind"] = "owner"  # type: ignore[index]
    desk.cache.save(document)
    assert desk.run("token", ORIGIN) == 77
    assert desk.run("status", ORIGIN) == 77


BASE = ("provider_url", "authorization_server", "scope", "client", "created_at", "credential")
BASE_OF_CREDENTIAL = ("access_token", "token_type", "expires_at", "grant_id", "scope")


def test_a_file_of_ours_has_every_member_that_other_tools_need(desk: Desk) -> None:
    document = json.loads(desk.cache.path(ORIGIN).read_text())
    assert set(BASE) <= set(document)
    assert all(isinstance(document["credential"][name], str) for name in BASE_OF_CREDENTIAL)
    assert document["client"]["client_id"] == "cli_1"


def test_a_file_that_another_tool_wrote_serves_every_command(desk: Desk) -> None:
    path = desk.cache.path(ORIGIN)
    ours = json.loads(path.read_text())
    theirs = {name: ours[name] for name in BASE}
    theirs["credential"] = {name: ours["credential"][name] for name in BASE_OF_CREDENTIAL}
    path.write_text(json.dumps({**theirs, "theirs_alone": {"kept": True}}))
    assert desk.run("status", ORIGIN) == 0
    assert desk.run("token", ORIGIN) == 0
    assert desk.out == "pdpp_at_1\n"
    assert json.loads(path.read_text())["theirs_alone"] == {"kept": True}
    assert desk.run("disconnect", ORIGIN) == 0
    assert desk.provider.forms("/oauth/revoke") == [{"token": "pdpp_at_1", "client_id": "cli_1"}]
