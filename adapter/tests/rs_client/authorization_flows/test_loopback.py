from __future__ import annotations

import secrets
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from adapter.tests.rs_client.provider import ORIGIN, FakeProvider
from pdpp_mcp_server.rs_client.authorization_flows import (
    ClientCodeRequest,
    RequestRefused,
    code_request,
    listening,
)
from pdpp_mcp_server.rs_client.credentials import ApprovalDenied, ApprovalExpired
from pdpp_mcp_server.rs_client.discovery import discover

FOUND = discover(FakeProvider().exchange, ORIGIN)


def request() -> ClientCodeRequest:
    return code_request(
        "cli_1", "http://127.0.0.1:1/callback", ORIGIN, "s", "[]", secrets.token_bytes
    )


def test_the_address_carries_challenge_state_and_resource() -> None:
    made = request()
    query = parse_qs(urlsplit(made.address(FOUND, made.parameters)).query)
    assert query["code_challenge_method"] == ["S256"]
    assert len(query["code_challenge"][0]) == 43
    assert query["state"] == [made.state]
    assert query["resource"] == [ORIGIN]
    assert made.verifier not in repr(made)


def test_the_browsers_answer_is_taken_once_it_comes() -> None:
    with listening() as listener:
        answer = {"code": "pdpp_ac_1", "state": "s", "iss": ORIGIN}
        page = httpx2.get(listener.redirect_uri, params=answer)
        assert "You can close this window" in page.text
        assert listener.answer(5, "s") == answer


def test_what_a_page_sends_that_does_not_know_the_state_ends_nothing() -> None:
    with listening() as listener:
        httpx2.get(listener.redirect_uri, params={"code": "theirs", "state": "guessed"})
        httpx2.get(listener.redirect_uri, params={"error": "access_denied"})
        httpx2.get(listener.redirect_uri, params={"code": "ours", "state": "s"})
        assert listener.answer(5, "s")["code"] == "ours"
        with pytest.raises(ApprovalExpired):
            listener.answer(0, "s")


def test_nobody_coming_is_expired() -> None:
    with listening() as listener, pytest.raises(ApprovalExpired):
        listener.answer(0, "s")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"state": "other"}, RequestRefused),
        ({"iss": "https://evil.example"}, RequestRefused),
        ({"code": ""}, RequestRefused),
        ({"error": "access_denied"}, ApprovalDenied),
        ({"error": "invalid_scope", "code": ""}, RequestRefused),
    ],
)
def test_an_answer_that_is_not_ours_gives_no_code(
    changes: dict[str, str], error: type[Exception]
) -> None:
    made = request()
    answer = {"code": "pdpp_ac_1", "state": made.state, "iss": ORIGIN}
    assert made.code(FOUND, answer) == "pdpp_ac_1"
    with pytest.raises(error):
        made.code(FOUND, {**answer, **changes})
