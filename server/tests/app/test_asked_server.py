"""Where the password of an account goes, and where it does not: of a DAV server, as of each."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from threading import Thread
from time import monotonic

import httpx2
import pytest

from pdpp_sources.account_requests import AccountTrouble, AskServer
from personal_server.app.asked_server import (
    LARGEST_ANSWER_BYTES,
    SILENCE_SECONDS,
    AskedServer,
    is_related,
)
from personal_server.app.dav_wire import DavServer
from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_kinds import CALENDARS

OWN = "caldavs://ada@caldav.example.org/home/"
PUBLIC, PRIVATE = "93.184.216.34", "10.0.0.7"
Answer = Callable[[httpx2.Request], httpx2.Response]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[httpx2.Request]:
    """What was sent; each name of a private zone has a private address."""

    def addresses(host: str, *_: object, **__: object) -> list[tuple[object, ...]]:
        address = PRIVATE if host.startswith("intra") else PUBLIC
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    return []


def server_of(asked: list[httpx2.Request], answer: Answer) -> AskedServer:
    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return answer(request)

    client = httpx2.Client(transport=httpx2.MockTransport(handler))
    return DavServer(WebPlace.of(CALENDARS, OWN), "s3cret", open_client=lambda: client)


def leads_to(location: str) -> list[tuple[bytes, bytes]]:
    """The header of a redirect, as its bytes come."""
    return [(b"location", location.encode())]


def ask(server: AskedServer, method: str = "PROPFIND") -> None:
    server.ask(AskServer(method, "https://caldav.example.org/home/", "0", ""))


def refused(server: AskedServer, method: str = "PROPFIND") -> str:
    with pytest.raises(AccountTrouble) as caught:
        ask(server, method)
    return caught.value.code


@pytest.mark.parametrize(
    ("host", "own", "is_one"),
    [
        ("p42-caldav.icloud.com", "caldav.icloud.com", True),
        ("a.co.uk", "b.co.uk", False),
        ("dav.a.co.uk", "a.co.uk", True),
        ("example.org.evil.com", "example.org", False),
        ("evilexample.org", "example.org", False),
        ("10.0.0.1", "10.1.0.1", False),
        ("org", "example.org", False),
        ("evil.com.", "jmap.example.com.", False),
    ],
)
def test_names_of_one_owner_are_told_from_others(host: str, own: str, *, is_one: bool) -> None:
    assert is_related(host, own) is is_one


@pytest.mark.parametrize(
    "location",
    [
        "https://evil.example.com/home/",
        "http://caldav.example.org/home/",
        "https://caldav.example.org:8443/home/",
        "https://intra.example.org/home/",
        "https://ada:s3cret@caldav.example.org/home/",
        "file:///etc/passwd",
        "https://caldav.example.org:port/",
        "https://[",
        "//[::1",
        "https://\u00fc.example.org/",
        "https://\u2100.example.org/",
    ],
)
def test_no_redirect_takes_the_password_elsewhere(
    asked: list[httpx2.Request], location: str
) -> None:
    server = server_of(asked, lambda _: httpx2.Response(302, headers=leads_to(location)))
    assert refused(server) == "redirect_refused"
    assert len(asked) == 1


def test_a_redirect_to_the_same_owner_is_followed_with_its_method_and_body(
    asked: list[httpx2.Request],
) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.headers["host"] == "p42.example.org":
            return httpx2.Response(207, content=b"")
        return httpx2.Response(301, headers={"location": "https://p42.example.org/home/"})

    ask(server_of(asked, answer))
    assert [request.method for request in asked] == ["PROPFIND", "PROPFIND"]
    assert all(request.url.host == PUBLIC for request in asked)  # pinned, not looked up again


def test_a_circle_of_redirects_ends(asked: list[httpx2.Request]) -> None:
    own = {"location": "https://caldav.example.org/home/"}
    assert refused(server_of(asked, lambda _: httpx2.Response(302, headers=own)))
    assert len(asked) < 10


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (httpx2.Response(401, headers={"www-authenticate": "Basic realm=x"}), "sign_in_refused"),
        (httpx2.Response(401, headers={"www-authenticate": "Digest x"}), "sign_in_unsupported"),
        (httpx2.Response(503), "dav_unreachable"),
        (httpx2.Response(429), "dav_unreachable"),
    ],
)
def test_a_refusal_is_tried_once(
    asked: list[httpx2.Request], answer: httpx2.Response, code: str
) -> None:
    assert refused(server_of(asked, lambda _: answer)) == code
    assert len(asked) == 1


def test_an_answer_packed_against_the_request_is_refused(asked: list[httpx2.Request]) -> None:
    packed = {"content-encoding": "gzip"}
    server = server_of(asked, lambda _: httpx2.Response(207, headers=packed, stream=_Endless()))
    assert refused(server) == "dav_misbehaves"


def test_nothing_but_reads_is_sent(asked: list[httpx2.Request]) -> None:
    for method in ("PUT", "DELETE", "MKCOL", "PROPPATCH", "POST"):
        assert refused(server_of(asked, lambda _: httpx2.Response(201)), method)
    server = server_of(asked, lambda _: httpx2.Response(207))
    with pytest.raises(AccountTrouble):
        server.ask(AskServer("PROPFIND", "https://caldav.example.org/home/", "\u00fc", ""))
    assert not asked


class _Endless(httpx2.SyncByteStream):
    """Goes on beyond every bound."""

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(LARGEST_ANSWER_BYTES // 65_536 + 2):
            yield b" " * 65_536


def test_a_server_that_keeps_a_run_for_ever_is_left(asked: list[httpx2.Request]) -> None:
    """Few feeds run at once: as many that answered slowly, and in time, would stop all others."""
    server = server_of(asked, lambda _: httpx2.Response(207))
    ask(server)
    server.run_seconds = 0
    assert (refused(server), len(asked)) == ("dav_misbehaves", 1)


def test_an_answer_without_end_is_left(asked: list[httpx2.Request]) -> None:
    server = server_of(asked, lambda _: httpx2.Response(207, stream=_Endless()))
    ask(server)
    with pytest.raises(AccountTrouble) as caught:
        list(iter(server.words, b""))
    assert caught.value.code == "dav_misbehaves"


def _all_of(server: AskedServer) -> None:
    server.ask(AskServer("PROPFIND", server.place.url, "0", ""))
    list(iter(server.words, b""))


@pytest.mark.parametrize(
    "beginning", [b"HTTP/1.1 207 OK\r\nX-Long: a", b"HTTP/1.1 207 OK\r\nContent-Length: 9\r\n\r\na"]
)
def test_an_answer_that_trickles_is_left(beginning: bytes) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()

    def trickle() -> None:
        with listener.accept()[0] as wire:
            wire.recv(4096)
            wire.sendall(beginning)
            wire.recv(1)  # until it is left

    with listener:
        peer = Thread(target=trickle)
        peer.start()
        place = WebPlace.of(CALENDARS, f"caldav://ada@{host}:{port}/")
        server = DavServer(place, "s3cret", answer_seconds=0.1)
        began = monotonic()
        with pytest.raises(AccountTrouble):
            _all_of(server)
        assert monotonic() - began < SILENCE_SECONDS / 2  # it is left before it is silent for long
        server.close()
        peer.join(10)
        assert not peer.is_alive()
