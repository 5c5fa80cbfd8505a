"""Where the password or token of a JMAP account goes, and where it does not."""

from __future__ import annotations

import json

import httpx2
import pytest

from pdpp_kernel.errors import InvalidRequest
from pdpp_sources.account_requests import AccountTrouble, AskServer
from personal_server.app.jmap_sign_ups import jmap_place
from personal_server.app.jmap_wire import JmapServer
from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_kinds import JMAP
from server.tests.app.test_asked_server import PUBLIC, asked

__all__ = ["asked"]


def calls(*methods: str) -> str:
    named = [[method, {"accountId": "a", "ids": ["M1"]}, "0"] for method in methods]
    return json.dumps({"using": ["urn:ietf:params:jmap:mail"], "methodCalls": named})


def server_of(place: str, asked: list[httpx2.Request]) -> JmapServer:
    def handler(request: httpx2.Request) -> httpx2.Response:
        asked.append(request)
        return httpx2.Response(200, json={})

    found = JmapServer(WebPlace.of(JMAP, place), "s3cret")
    client = httpx2.Client(transport=httpx2.MockTransport(handler))
    found.open_client = lambda: client
    return found


@pytest.mark.parametrize(
    ("own", "url", "is_asked"),
    [
        ("jmaps://ada@jmap.example.org/", "https://jmap.example.org/api", True),
        ("jmaps://ada@jmap.example.org/", "https://mail.example.org/api", True),
        ("jmaps://ada@jmap.example.org/", "http://jmap.example.org/api", False),
        ("jmaps://ada@jmap.example.org/", "https://jmap.example.org:8443/api", False),
        ("jmaps://ada@jmap.example.org/", "https://example.com/api", False),
        ("jmaps://ada@jmap.example.org/", "https://intra.example.org/api", False),
        ("jmaps://ada@jmap.example.org/", "https://10.0.0.7/api", False),
        ("jmaps://ada@jmap.example.org/", "https://www.fastmailusercontent.com/b", False),
        ("jmaps://ada@api.fastmail.com/", "https://www.fastmailusercontent.com/b", True),
        ("jmaps://ada@api.fastmail.com/", "https://fastmailusercontent.com.evil.org/b", False),
    ],
)
def test_the_password_goes_to_one_owner_s_names_alone(
    asked: list[httpx2.Request], own: str, url: str, *, is_asked: bool
) -> None:
    server = server_of(own, asked)
    body = calls("Email/get")
    if is_asked:
        assert server.ask(AskServer("POST", url, None, body)).status == 200
        assert asked[0].url.host == PUBLIC
    else:
        with pytest.raises(AccountTrouble) as caught:
            server.ask(AskServer("POST", url, None, body))
        assert caught.value.code == "redirect_refused"
    assert len(asked) == is_asked


def test_nothing_is_asked_that_changes_an_account(asked: list[httpx2.Request]) -> None:
    server = server_of("jmap://ada@127.0.0.1:9/", asked)
    for method in ("PUT", "DELETE", "PROPFIND"):
        with pytest.raises(AccountTrouble):
            server.ask(AskServer(method, "http://127.0.0.1:9/", None, ""))
    assert asked == []


@pytest.mark.parametrize(
    "body",
    [
        calls("Email/set"),
        calls("Email/get", "EmailSubmission/set"),
        calls("Email/get")[:-1] + ", " + calls("Email/set")[1:],
        calls("Email/set")[:-1] + ", " + calls("Email/get")[1:],
        calls("Email/get")[:-1] + ', "createdIds": {}}',
        "{}",
        "",
    ],
)
def test_what_parses_strangers_mails_has_nothing_changed_or_sent(
    asked: list[httpx2.Request], body: str
) -> None:
    server = server_of("jmap://ada@127.0.0.1:9/", asked)
    with pytest.raises(AccountTrouble) as caught:
        server.ask(AskServer("POST", "http://127.0.0.1:9/", None, body))
    assert (caught.value.code, asked) == ("mailbox_misbehaves", [])


def test_a_get_has_no_body(asked: list[httpx2.Request]) -> None:
    server = server_of("jmap://ada@127.0.0.1:9/", asked)
    server.ask(AskServer("GET", "http://127.0.0.1:9/", None, calls("Email/set")))
    assert [each.content for each in asked] == [b""]


@pytest.mark.parametrize(
    ("typed", "user", "token", "place"),
    [
        ("ada@example.org", None, False, "jmaps://ada%40example.org@example.org/"),
        (
            "ada@fastmail.com",
            None,
            False,
            "jmaps+token://ada%40fastmail.com@api.fastmail.com/jmap/session",
        ),
        (
            "https://api.fastmail.com/jmap/session",
            "ada@fastmail.com",
            False,
            "jmaps+token://ada%40fastmail.com@api.fastmail.com/jmap/session",
        ),
        ("https://JMAP.example.org", "ada", True, "jmaps+token://ada@jmap.example.org/"),
        ("http://127.0.0.1:8080/", "ada", False, "jmap://ada@127.0.0.1:8080/"),
        ("http://jmap.example.org/", "ada", False, None),
        ("https://ada:s3cret@jmap.example.org/", "ada", False, None),
        ("https://jmap.example.org/", None, False, None),
    ],
)
def test_an_account_is_found_from_what_is_typed(
    typed: str, user: str | None, place: str | None, *, token: bool
) -> None:
    if place is None:
        with pytest.raises(InvalidRequest):
            jmap_place(typed, user, is_token=token)
    else:
        found = jmap_place(typed, user, is_token=token)
        assert found.text == place
        assert WebPlace.of(JMAP, place) == found
