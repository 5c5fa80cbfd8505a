"""One request: its origin, id, version and bearer, what its headers prefer, what a route sees.

Rule: what the outermost application settled (`scope["state"]`) is believed, and nothing else is: a
request id is minted here and nowhere else, where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

import starlette.requests
from starlette.types import Receive, Scope

from pdpp_kernel.errors import (
    AuthenticationRequired,
    InvalidDpopProof,
    InvalidToken,
    MisdirectedRequest,
    PersonalServerError,
    UnsupportedVersion,
)
from pdpp_kernel.failures import new_request_id
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.envelope import Warning
from personal_server.domain.possession import PROOF_ALGORITHMS, PresentedToken, SentProof
from personal_server.settings import FORWARDED, Network, Settings
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
            f"This server speaks PDPP-Version {PDPP_VERSION}.",
            param="PDPP-Version",
            allowed_values=[PDPP_VERSION],
        )


@dataclass(frozen=True, slots=True)
class Request:
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
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
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


# What a weighted header (`Accept`, `Accept-Encoding`) prefers.  Source: RFC 9110 12.5.1, 12.5.3.

_WEIGHT = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\Z")


def weights(header: str) -> Mapping[str, float]:
    """What a weighted header names, and how much each is wanted; a malformed weight is none."""
    found: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        weight = next((p[2:].strip() for p in parameters if p.startswith("q=")), "1")
        if name:
            found[name] = max(found.get(name, 0.0), float(weight) if _WEIGHT.match(weight) else 0.0)
    return found


def prefers_html(accept: str) -> bool:
    """Whether HTML is wanted more than JSON."""
    wanted = weights(accept)
    return _rank(wanted, "text/html") > _rank(wanted, "application/json")


def prefers_json(accept: str) -> bool:
    """Whether JSON is wanted more than HTML."""
    wanted = weights(accept)
    return _rank(wanted, "application/json") > _rank(wanted, "text/html")


def _rank(wanted: Mapping[str, float], media_type: str) -> tuple[float, bool]:
    """How much a media type is wanted: its own name counts before a wildcard of equal weight."""
    for name in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        weight = wanted.get(name)
        if weight is not None:
            return (weight, weight > 0 and name == media_type)
    return (0.0, False)


# The origin of a request: which of our names the caller used, and from where it came.
#
# Rule: this is decided once, on the outermost application; forwarded headers count only from a
# trusted proxy, and no rule anywhere authorizes by address.
# Source: docs/contract/authorization-server.md 1.


_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """The origins we answer for.

    Shapes: `hosts` maps a lower-case `host[:port]`, also with the default port of the origin, to
    the origin it stands for; `forwarded` means that hosts are believed from trusted proxies over
    https only; `behind_loopback` means that a proxy on this machine stands before us, which is
    believed about the address of a client and about nothing else.
    """

    hosts: Mapping[str, str]
    forwarded: bool
    trusted_proxies: tuple[Network, ...]
    behind_loopback: bool = False

    @property
    def origins(self) -> tuple[str, ...]:
        """Every origin of this server, the configured one first."""
        return tuple(dict.fromkeys(self.hosts.values()))

    def origin_of(self, peer: str, scheme: str, headers: Mapping[str, str]) -> str:
        """The origin the request was made on.

        Shapes: `headers` by lower-case name.  Raises: MisdirectedRequest.
        """
        host = headers.get("host", "")
        trusted = self._trusts(peer)
        if trusted:
            scheme = _last(headers.get("x-forwarded-proto")) or scheme
            host = _last(headers.get("x-forwarded-host")) or host
        origin = self.hosts.get(host.lower())
        if origin is None or (self.forwarded and not (trusted and scheme == "https")):
            raise _misdirected(self._why(host.lower(), scheme, trusted=trusted))
        return origin

    def client_address(self, peer: str, headers: Mapping[str, str]) -> str:
        """Where the caller is: the peer, or what trusted proxies say of it.

        Of a proxy on this machine the last entry counts, which it wrote itself.
        """
        forwarded = headers.get("x-forwarded-for")
        if forwarded is None:
            return peer
        hops = [_address_of(hop) for hop in forwarded.split(",")]
        if self._trusts(peer):
            return next((hop for hop in reversed(hops) if hop and not self._trusts(hop)), peer)
        if self.behind_loopback and _is_loopback(peer):
            return hops[-1] or peer
        return peer

    def _why(self, host: str, scheme: str, *, trusted: bool) -> str:
        """What is wrong with a request that is none of ours: a key of `_MISDIRECTED`."""
        if self.forwarded and not trusted:
            return "untrusted_proxy"
        if self.forwarded and scheme != "https":
            return "not_https"
        names = {known.rsplit(":", 1)[0] for known in self.hosts}
        return "port_missing" if host in names else "unknown_host"

    def _trusts(self, address: str) -> bool:
        if not self.trusted_proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.trusted_proxies)


_MISDIRECTED = {
    "unknown_host": (
        "This server does not answer for the requested host.",
        "Use the address in PDPP_PUBLIC_URL; behind a proxy, let it pass Host unchanged.",
    ),
    "port_missing": (
        "The request names the host of this server without its port.",
        "A proxy on the way drops it; with nginx: proxy_set_header Host $http_host;",
    ),
    "untrusted_proxy": (
        "This server is told its address by a proxy, and the request came from none.",
        "Name the proxy's address in PDPP_TRUSTED_PROXIES.",
    ),
    "not_https": (
        "This server is reached over https only, and the proxy did not say that it was.",
        "Let the proxy send X-Forwarded-Proto: https.",
    ),
}


def _misdirected(reason: str) -> MisdirectedRequest:
    message, next_step = _MISDIRECTED[reason]
    return MisdirectedRequest(message, reason=reason, next_step=next_step)


def origin_policy(settings: Settings) -> OriginPolicy:
    """The policy of a configuration; a loopback origin answers to all loopback names."""
    forwarded = settings.public_url == FORWARDED
    if forwarded:
        named = [f"https://{host.removesuffix(':443')}" for host in settings.trusted_hosts]
        return OriginPolicy(_hosts(named), forwarded, settings.trusted_proxies)
    parts = urlsplit(settings.public_url)
    origins = [settings.public_url]
    behind_loopback = parts.scheme == "https" and _is_loopback(settings.bind_host)
    if parts.hostname in ("127.0.0.1", "localhost", "::1"):
        port = "" if parts.port is None else f":{parts.port}"
        origins += [f"{parts.scheme}://{name}{port}" for name in _LOOPBACK_HOSTS]
    return OriginPolicy(_hosts(origins), forwarded, settings.trusted_proxies, behind_loopback)


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _address_of(hop: str) -> str:
    """The address in an entry of `X-Forwarded-For`, without the port that some proxies add."""
    hop = hop.strip()
    host = hop[1:].partition("]")[0] if hop.startswith("[") else hop
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return str(ip_address(host))
    except ValueError:
        return ""


def _hosts(origins: Iterable[str]) -> dict[str, str]:
    """Every way to write the host of an origin."""
    found: dict[str, str] = {}
    for origin in origins:
        parts = urlsplit(origin)
        found.setdefault(parts.netloc, origin)
        if parts.port is None:
            found.setdefault(f"{parts.netloc}:{_DEFAULT_PORT[parts.scheme]}", origin)
    return found


def _last(header: str | None) -> str:
    return header.rsplit(",", 1)[-1].strip() if header else ""


# Access tokens: from the `Authorization` header to the challenge.
#
# Rule: this module knows the header's syntax and the challenge; what a token stands for is known to
# whoever the surface hands in.  Cookies and query parameters are never credentials.


_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,4096}\Z")


_SCHEMES = ("bearer", "dpop")


def sent_token(authorization: str | None) -> str | None:
    """The access token of an `Authorization` header, however it is presented."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() in _SCHEMES else None


def shows_proof(authorization: str | None) -> bool:
    """Whether a token is presented with a proof of possession."""
    return (authorization or "").strip().partition(" ")[0].lower() == "dpop"


def needed_token(request: IncomingRequest) -> PresentedToken:
    """The token of a request.

    Raises: AuthenticationRequired (none, an empty one, or another scheme), InvalidToken (it has
        not the form of one).
    """
    presented = request.presented
    if presented is None:
        raise AuthenticationRequired("Send an access token: Authorization: Bearer <token>.")
    if _TOKEN.match(presented.token) is None:
        raise InvalidToken("The bearer token is malformed; authorize again.")
    return presented


def metadata_url(origin: str, resource: str = "") -> str:
    """Where the protected resource of a path (`""`: the origin itself) describes itself."""
    return f"{origin}/.well-known/oauth-protected-resource{resource}"


def challenge(
    error: PersonalServerError, origin: str, resource: str = "", *, with_proof: bool = False
) -> str:
    """`WWW-Authenticate` of a 401; `error` stands in it only when a token was sent.

    It names the scheme that the token came with; without a token both are offered.
    Source: docs/contract/resource-server.md 3; docs/contract/authorization-server.md 12.2.
    """
    algorithms = f'algs="{" ".join(PROOF_ALGORITHMS)}"'
    where = f'resource_metadata="{metadata_url(origin, resource)}", scope="pdpp:read"'
    if isinstance(error, AuthenticationRequired):
        return f"Bearer {where}, DPoP {algorithms}"
    code = error.code if isinstance(error, InvalidDpopProof) else "invalid_token"
    what = f'error="{code}", error_description="{error.message}"'
    return f"DPoP {where}, {what}, {algorithms}" if with_proof else f"Bearer {where}, {what}"
