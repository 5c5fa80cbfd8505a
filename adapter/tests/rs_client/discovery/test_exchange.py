from __future__ import annotations

import httpx2
import pytest

from pdpp_mcp_server.rs_client.credentials import ProviderUnavailable
from pdpp_mcp_server.rs_client.discovery import JsonResponse, ProviderExchange, network_exchange


def exchange(response: httpx2.Response) -> ProviderExchange:
    return ProviderExchange(httpx2.Client(transport=httpx2.MockTransport(lambda _: response)))


def test_anything_but_a_json_object_is_an_empty_body() -> None:
    for content in (b"", b"[1]", b"<html>", b"\xff"):
        reply = exchange(httpx2.Response(200, content=content)).get("https://me.example/")
        assert (reply.status, reply.body) == (200, {})


def test_redirects_are_not_followed() -> None:
    response = httpx2.Response(302, headers={"location": "https://evil.example"})
    reply = exchange(response).post_form("https://me.example/", {"token": "x"})
    assert reply.status == 302
    assert not reply.ok


@pytest.mark.parametrize(
    ("body", "code"),
    [({"error": "invalid_grant"}, "invalid_grant"), ({"error": {"code": "x"}}, "x"), ({}, None)],
)
def test_the_code_of_an_error_is_found_in_both_families(
    body: dict[str, object], code: str | None
) -> None:
    assert JsonResponse(400, body, {}).error == code


def test_an_address_that_cannot_be_reached_is_unavailable() -> None:
    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("pdpp_at_secret")

    with pytest.raises(ProviderUnavailable) as caught:
        ProviderExchange(httpx2.Client(transport=httpx2.MockTransport(fail))).get(
            "https://me.example"
        )
    assert "secret" not in str(caught.value)


def test_it_says_what_it_is_to_the_owner_who_is_asked() -> None:
    with network_exchange().http as client:
        assert client.headers["user-agent"].startswith("pdpp (")
