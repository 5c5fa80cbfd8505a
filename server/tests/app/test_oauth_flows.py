"""A mailbox signed in to at our own authorization server, which dovecot asks about each token."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_bytes
from urllib.parse import urlencode

import anyio
import httpx2
import pytest

from pdpp_mcp_server.rs_client.authorization_flows import DeviceOffer, PollWait
from pdpp_mcp_server.rs_client.discovery import network_exchange
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.oauth_access import OAuthAccess
from personal_server.app.oauth_flows import OAuthClient, provider_named
from personal_server.authorization_server.configuration import Configuration
from personal_server.granting.clients import add_introspection_client
from personal_server.granting.revocations import end_grant
from personal_server.storage.authorization_rows import GrantRow
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from server.tests.app.test_mailbox_runs import (
    FeedOf,
    again,
    by_itself,
    feed_of,
    put,
    settings,
    signed_in,
)
from server.tests.authorization_server.conftest import OWNER, Server, query_of
from server.tests.authorization_server.conftest import server as owned
from tests.dovecot import TokenAsks, mail_server, needs_dovecot
from tests.new_files import new_file

__all__ = ["feed_of", "owned", "settings"]
SCOPE = "pdpp:read offline_access"


@contextmanager
def reached(server: Server) -> Generator[str]:
    """Serve our authorization server on a port of this machine; its origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["content-length"] or 0)))

        def do_GET(self) -> None:
            self._answer(b"")

        def log_message(self, format: str, *args: object) -> None: ...

        def _answer(self, body: bytes) -> None:
            found = anyio.run(self._asked, body)
            self.send_response(found.status_code)
            for name in ("content-type", "location", "www-authenticate"):
                if name in found.headers:
                    self.send_header(name, found.headers[name])
            self.send_header("content-length", str(len(found.content)))
            self.end_headers()
            self.wfile.write(found.content)

        async def _asked(self, body: bytes) -> httpx2.Response:
            async with server.client() as client:
                headers = dict(self.headers.items())
                return await client.request(self.command, self.path, content=body, headers=headers)

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    origin = f"http://127.0.0.1:{listening.server_port}"
    server.origin, server.configuration = origin, Configuration(origins=(origin,))
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield origin
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[AuthorizationStore]:
    with closing(new_file(tmp_path / "issuer.db")) as database:
        yield SqlAuthorizationStore(database, "own_1")


@pytest.fixture
def issuer(owned: Server) -> Iterator[Server]:
    owned.now_ns = time.time_ns()
    with reached(owned):
        yield owned


def client_at(issuer: Server) -> OAuthClient:
    """A client that its owner registers there."""
    metadata = {
        "client_name": "Mail of my own",
        "redirect_uris": ["http://127.0.0.1/callback"],
        "grant_types": [
            "authorization_code",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
    }
    answer = httpx2.post(f"{issuer.origin}/oauth/register", json=metadata)
    found = provider_named(issuer.origin, SCOPE, network_exchange)
    return OAuthClient(issuer.origin, found, answer.json()["client_id"], None)


def by_code(issuer: Server) -> OAuthAccess:
    """What is given once the owner typed the code."""

    def typed(offer: DeviceOffer) -> None:
        request = issuer.requesting.find_device(offer.user_code, OWNER)
        issuer.allow(request.request_id)

    client = client_at(issuer)
    given = client.by_code(network_exchange(), typed, PollWait(lambda _: None, lambda: 0.0))
    return client.access(given, issuer.now_ns)[0]


def by_browser(issuer: Server) -> OAuthAccess:
    """What is given once a browser came back."""
    browsers = list[threading.Thread]()

    def browse(address: str) -> None:
        consent = httpx2.get(address).headers["location"]
        decided = issuer.allow(consent.removeprefix("/consent/"))
        httpx2.get(f"{query_of(address)['redirect_uri']}?{urlencode(decided)}")

    def shown(address: str) -> None:
        browsers.append(threading.Thread(target=browse, args=[address]))
        browsers[0].start()

    client = client_at(issuer)
    given = client.by_browser(network_exchange(), "ada", shown, token_bytes)
    browsers[0].join()
    return client.access(given, issuer.now_ns)[0]


@needs_dovecot
def test_a_mailbox_is_read_by_tokens_of_our_own_server_until_their_grant_ends(
    issuer: Server, feed_of: FeedOf
) -> None:
    asks = add_introspection_client(issuer.store, "Dovecot", issuer.bytes_of, issuer.now_ns)
    address = issuer.origin.replace("//", f"//{asks.caller_id}:{asks.secret}@")
    tokens = TokenAsks(f"{address}/introspect", attribute="sub", called="own_1")
    with mail_server(tokens=tokens) as mail:
        with signed_in(mail) as client:
            put(client, "INBOX", range(2))
        fed = feed_of(mail.place, by_code(issuer).text)
        first = by_itself(fed)
        assert (first.code, first.records_new) == (None, 2)
        FeedSecrets.of(fed.stores).keep(fed.feed, by_browser(issuer).text)
        with signed_in(mail) as client:
            put(client, "INBOX", range(2, 3))
        again(fed)
        assert by_itself(fed).records_new == 1
        grants = issuer.rows(GrantRow)
        with issuer.store.write() as writer:
            for each in grants:
                end_grant(writer, each.grant_id, "owner", OWNER, issuer.now_ns)
        again(fed)
        assert by_itself(fed).code == "sign_in_ended"
        assert fed.feed.state == "needs_you"
