from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from threading import Thread

import httpx2
import pytest

from pdpp_mcp_server.rs_client import discovery
from pdpp_mcp_server.rs_client.credentials import ProviderUnavailable
from pdpp_mcp_server.rs_client.discovery import (
    MAX_BODY_BYTES,
    JsonResponse,
    ProviderExchange,
    network_exchange,
)


def exchange(response: httpx2.Response) -> ProviderExchange:
    return ProviderExchange(httpx2.Client(transport=httpx2.MockTransport(lambda _: response)))


def test_anything_but_a_json_object_is_an_empty_body() -> None:
    for content in (b"", b"[1]", b"<html>", b"\xff"):
        reply = exchange(httpx2.Response(200, content=content)).get("https://me.example/")
        assert (reply.status, reply.body) == (200, {})


class Endless(httpx2.SyncByteStream):
    """A body that does not end; `given` bytes of it were read."""

    given = 0

    def __iter__(self) -> Iterator[bytes]:
        while True:
            self.given += 65_536
            yield b" " * 65_536


def test_no_more_is_read_than_a_document_may_have() -> None:
    endless = Endless()
    reply = exchange(httpx2.Response(200, stream=endless)).get("https://me.example/")
    assert reply.body == {}
    assert endless.given <= MAX_BODY_BYTES + 65_536


@pytest.mark.parametrize("codings", ["gzip, gzip", "deflate", "br"])
def test_a_body_that_is_packed_otherwise_than_asked_is_not_unpacked(codings: str) -> None:
    packed = Endless()
    headers = {"content-encoding": codings}
    response = httpx2.Response(200, stream=packed, headers=headers)
    assert exchange(response).get("https://me.example/").body == {}
    assert packed.given == 0
    once = httpx2.Response(
        200, content=gzip.compress(b'{"a":1}'), headers={"content-encoding": "gzip"}
    )
    assert exchange(once).get("https://me.example/").body == {"a": 1}
    assert network_exchange().http.headers["accept-encoding"] == "gzip"


def test_a_body_of_brackets_alone_is_none() -> None:
    response = httpx2.Response(200, content=b"[" * 100_000)
    assert exchange(response).get("https://me.example/").body == {}


def test_a_server_that_trickles_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "ANSWER_SECONDS", 0.1)
    listener = socket.create_server(("127.0.0.1", 0))

    def trickle() -> None:
        with listener.accept()[0] as wire:
            wire.recv(4096)
            wire.sendall(b"HTTP/1.1 200 OK\r\nX-Long: a")
            wire.recv(1)  # until it is left

    with listener, network_exchange().http as client:
        server = Thread(target=trickle)
        server.start()
        host, port = listener.getsockname()
        with pytest.raises(ProviderUnavailable):
            ProviderExchange(client).get(f"http://{host}:{port}/")
        server.join(10)
        assert not server.is_alive()


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
