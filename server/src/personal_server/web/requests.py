"""One request: its origin, id, version and bearer, what its headers prefer, what a route sees.

Rule: what the outermost application settled (`scope["state"]`) is believed, and nothing else is: a
request id is minted here and nowhere else, where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, BinaryIO
from urllib.parse import quote

import msgspec
import starlette.requests
from starlette.types import Receive, Scope

from pdpp_kernel.errors import (
    AuthenticationRequired,
    InvalidToken,
    UnsupportedVersion,
)
from pdpp_kernel.failures import new_request_id
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.possession import PresentedToken, SentProof
from personal_server.web.authorization_headers import sent_token, shows_proof
from personal_server.web.parameters import Parameters

PDPP_VERSION = "2026-04-06"

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")


class IncomingRequest(starlette.requests.Request):
    """A request with what the outermost application settled; its own words stand in without one.

    Shapes: `client_address` is the peer's without an outermost application, `None` without a peer;
        `raw_path` and `raw_query` are as received, before percent-decoding; `accept` is empty
        without the header; `token_states` is what is known of bearers already, by token: only the
        in-process transport of the composition root hands that on.
    """

    def __init__(self, scope: Scope, receive: Receive | None = None) -> None:
        super().__init__(scope, receive or _nothing)
        state: Mapping[str, Any] = scope.get("state", {})
        self.request_id = state.get("request_id") or request_id_of(self.headers)
        self.origin = state.get("origin") or (
            f"{scope.get('scheme', 'http')}://{self.headers.get('host', '')}"
        )
        peer = None if self.client is None else self.client.host
        self.client_address: str | None = state.get("client_address", peer)
        self.token_states: Mapping[str, object] = state.get("token_states", {})
        self.raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
        self.raw_query: bytes = scope.get("query_string", b"")
        self.accept = self.headers.get("accept", "")

    @property
    def presented(self) -> PresentedToken | None:
        """The access token of the `Authorization` header; another scheme or nothing is none.

        Source: docs/contract/authorization-server.md 12.2.
        """
        authorization = self.headers.get("authorization")
        token = sent_token(authorization)
        if token is None:
            return None
        return PresentedToken(token, self._proof() if shows_proof(authorization) else None)

    @property
    def proof(self) -> SentProof | None:
        """The proof that came along, wherever a token stands.  Source: RFC 9449 4.1."""
        return self._proof() if "dpop" in self.headers else None

    def _proof(self) -> SentProof:
        url = self.origin + self.raw_path.decode("latin-1")
        return SentProof(tuple(self.headers.getlist("dpop")), self.method, url)


async def _nothing() -> dict[str, str]:
    return {"type": "http.disconnect"}


def request_id_of(headers: Mapping[str, str]) -> str:
    """The caller's request id if it may be echoed, else a fresh one.

    Shapes: headers by lower-case name.  Source: docs/contract/resource-server.md 1.3.
    """
    sent = headers.get("request-id") or headers.get("x-request-id") or ""
    return sent if _REQUEST_ID.match(sent) else new_request_id()


def check_version(headers: Mapping[str, str]) -> None:
    """Source: docs/contract/resource-server.md 1.3.  Raises: UnsupportedVersion."""
    if headers.get("pdpp-version", PDPP_VERSION) != PDPP_VERSION:
        raise UnsupportedVersion(
            f"This server supports PDPP-Version {PDPP_VERSION}.",
            param="PDPP-Version",
            allowed_values=[PDPP_VERSION],
        )


class Request(msgspec.Struct, frozen=True):
    """One call of a route of `/v1`, after steps 1 to 8 of docs/contract/resource-server.md 1.5.

    Shapes: `route_name` is method and pattern; `path` holds the decoded variable segments;
        `raw_path` and `raw_query` are as received; `body` is the whole body, `spool` a file of it
        for spooled routes; `headers` have lower-case names; `snapshot` is the state of the store
        that the caller of a read was identified in, and that the read is answered from; `warnings`
        are those that any answer to the caller has.
    Units: `now_ns` UTC nanoseconds.
    """

    route_name: str
    authority: ReadAuthority
    parameters: Parameters
    path: Mapping[str, str]
    raw_path: str
    raw_query: str
    origin: str
    request_id: str
    now_ns: int
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    body: bytes = b""
    spool: BinaryIO | None = None
    method: str = "GET"
    snapshot: object = None
    warnings: tuple[Warning, ...] = ()

    @property
    def self_link(self) -> str:
        """Path and query as received.  Source: docs/contract/resource-server.md 2.2."""
        return f"{self.raw_path}?{self.raw_query}" if self.raw_query else self.raw_path

    def next_link(self, cursor: str) -> str:
        """The same with `cursor` set and `changes_since` removed.

        Source: docs/contract/resource-server.md 2.2.
        """
        kept = [
            piece
            for piece in self.raw_query.split("&")
            if piece and piece.partition("=")[0] not in ("cursor", "changes_since")
        ]
        query = "&".join([*kept, f"cursor={quote(cursor, safe='')}"])
        return f"{self.raw_path}?{query}"


_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,4096}\Z")


def needed_token(request: IncomingRequest) -> PresentedToken:
    """The token of a request.

    Raises: AuthenticationRequired (none, an empty one, or another scheme), InvalidToken (it has
        not the form of one).
    """
    presented = request.presented
    if presented is None:
        raise AuthenticationRequired("Send an access token: Authorization: Bearer <token>.")
    if _TOKEN.match(presented.token) is None:
        raise InvalidToken("The bearer token is malformed. Authorize again.")
    return presented
