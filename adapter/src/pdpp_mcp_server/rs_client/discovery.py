"""Finding a server's endpoints from its address, and one exchange with them.

Rule: every name must be the one asked for, byte for byte, and every endpoint on the issuer's own
origin; a credential is never sent anywhere else. Redirects are not followed and nothing of a
response is quoted in an error; a server that cannot be reached is the only failure of an exchange.
Source: docs/contract/authorization-server.md 14.1, "Flow".
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from contextlib import closing
from urllib.parse import urlsplit

import httpx2
import msgspec
from msgspec.structs import replace

from pdpp_kernel.system.timed_connections import TimedConnection
from pdpp_kernel.unprinted import Unprinted
from pdpp_mcp_server.rs_client.answers import is_coding_known
from pdpp_mcp_server.rs_client.credentials import (
    ConnectNotSupported,
    MetadataFailure,
    ProviderUnavailable,
)
from pdpp_mcp_server.rs_client.json_values import (
    as_list,
    as_object,
    as_text,
    is_object,
    objects_in,
    parse_json,
)
from pdpp_mcp_server.rs_client.port import HeldToken
from pdpp_mcp_server.rs_client.proof_keys import ALGORITHM, ProofKey

HTTP_SECONDS, ANSWER_SECONDS = 15.0, 60.0
"""Of silence, and of all that an answer may take."""
MAX_BODY_BYTES = 4 * 1024**2
RESOURCE_PATH = "/.well-known/oauth-protected-resource"
SERVER_PATH = "/.well-known/oauth-authorization-server"


class Provider(msgspec.Struct, frozen=True):
    """A server's endpoints; `None` where it has none.

    `takes_proofs`: it binds tokens to a key of ours, and reads are served with such tokens.
    """

    origin: str
    issuer: str
    token: str
    authorization: str | None
    registration: str | None
    device_authorization: str | None
    pushed_request: str | None
    revocation: str | None
    public_clients: tuple[str, ...] = ()
    takes_proofs: bool = False


def discover(exchange: ProviderExchange, origin: str) -> Provider:
    """The endpoints behind an origin.  Raises: MetadataFailure, ProviderUnavailable."""
    resource = _document(exchange.get(origin + RESOURCE_PATH), "protected-resource")
    if resource.text("resource") != origin:
        raise MetadataFailure(
            "The server's metadata names another address than the one you gave.",
            "Use exactly the address that the server itself uses (PDPP_PUBLIC_URL).",
        )
    issuer = next(iter(as_list(resource.body.get("authorization_servers"))), None)
    if not isinstance(issuer, str):
        raise MetadataFailure(
            "The server's metadata names no authorization server.", "Check the server's version."
        )
    metadata = _server_metadata(exchange, issuer)
    proves = all(_takes_proofs(document) for document in (resource, metadata))
    return replace(_provider(origin, issuer, metadata), takes_proofs=proves)


def authorization_server(exchange: ProviderExchange, issuer: str) -> Provider:
    """The endpoints of an authorization server.  Raises: MetadataFailure, ProviderUnavailable."""
    return _provider(issuer, issuer, _server_metadata(exchange, issuer))


def _server_metadata(exchange: ProviderExchange, issuer: str) -> JsonResponse:
    metadata = _document(exchange.get(issuer.rstrip("/") + SERVER_PATH), "authorization-server")
    if metadata.text("issuer") != issuer:
        raise MetadataFailure(
            "The authorization server's metadata names another address than the one asked.",
            "Check the proxy in front of the server: the proxy must pass on the address unchanged.",
        )
    return metadata


def _takes_proofs(document: JsonResponse) -> bool:
    return ALGORITHM in as_list(document.body.get("dpop_signing_alg_values_supported"))


def _provider(origin: str, issuer: str, metadata: JsonResponse) -> Provider:
    def endpoint(name: str) -> str | None:
        url = metadata.text(name)
        if url is not None and _origin(url) != _origin(issuer):
            raise MetadataFailure(
                f"The server's {name} is at another origin than the server.",
                "Do not connect to this server; ask its operator.",
            )
        return url

    token = endpoint("token_endpoint")
    if token is None:
        raise ConnectNotSupported(
            "The server has no token endpoint.", "Check the server's address."
        )
    return Provider(
        origin=origin,
        issuer=issuer,
        token=token,
        authorization=endpoint("authorization_endpoint"),
        registration=endpoint("registration_endpoint"),
        device_authorization=endpoint("device_authorization_endpoint"),
        pushed_request=endpoint("pushed_authorization_request_endpoint"),
        revocation=endpoint("revocation_endpoint"),
        public_clients=tuple(
            name
            for entry in objects_in(metadata.body.get("pdpp_pre_registered_public_clients"))
            if isinstance(name := entry.get("client_id"), str)
        ),
    )


def _document(reply: JsonResponse, what: str) -> JsonResponse:
    if not reply.ok or not reply.body:
        raise MetadataFailure(
            f"The server has no readable {what} metadata (status {reply.status}).",
            "Check the address; it must be that of a personal server.",
        )
    return reply


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


class JsonResponse(msgspec.Struct, frozen=True):
    """Status, JSON object (empty without one) and headers by lower-case name."""

    status: int
    body: Mapping[str, object]
    headers: Mapping[str, str]

    @property
    def ok(self) -> bool:
        """Whether the status is a success."""
        return 200 <= self.status < 300

    @property
    def error(self) -> str | None:
        """The code of an error in either family."""
        found: object = self.body.get("error")
        if is_object(found):
            found = found.get("code")
        return found if isinstance(found, str) else None

    def text(self, name: str) -> str | None:
        """A member that is a non-empty string."""
        return as_text(self.body.get(name))


class ProviderExchange(Unprinted, frozen=True, eq=False):
    """Asks over one HTTP client.  Every method raises ProviderUnavailable and nothing else.

    With a `key`, forms prove it and tokens are presented as bound to it.
    """

    http: httpx2.Client
    key: ProofKey | None = None
    timed: TimedConnection = msgspec.field(default_factory=TimedConnection)

    def get(self, url: str, bearer: str | None = None) -> JsonResponse:
        """Read a document; `bearer` is an access token."""
        token = None if bearer is None else HeldToken(bearer, self.key)

        def asked() -> JsonResponse:
            presented = {} if token is None else token.headers("GET", url)
            return self.ask("GET", url, headers={"Accept": "application/json", **presented})

        reply = asked()
        repeat = token is not None and token.must_repeat(reply.status, reply.headers)
        return asked() if repeat else reply

    def post_form(self, url: str, form: Mapping[str, str]) -> JsonResponse:
        """Post a form."""

        def asked() -> JsonResponse:
            proof = {} if self.key is None else {"DPoP": self.key.proof("POST", url)}
            return self._send(self.http.build_request("POST", url, data=dict(form), headers=proof))

        reply = asked()
        if self.key is not None and self.key.learn(reply.status, reply.headers):
            return asked()
        return reply

    def post_json(self, url: str, body: object, bearer: str | None = None) -> JsonResponse:
        """Post a JSON document."""
        accept = {"Accept": "application/json, text/event-stream"}
        return self.ask("POST", url, headers={**accept, **_bearer(bearer)}, body=body)

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> JsonResponse:
        """Any request; `body` is sent as JSON unless it is `None`."""
        request = self.http.build_request(method, url, headers=dict(headers or {}), json=body)
        return self._send(request)

    def _send(self, request: httpx2.Request) -> JsonResponse:
        request.extensions["trace"] = self.timed.trace
        self.timed.begin(ANSWER_SECONDS)
        try:
            response = self.http.send(request, stream=True, follow_redirects=False)
            with closing(response):
                raw = _body(response)
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise unavailable("The server could not be reached.") from None
        finally:
            self.timed.end()
        try:
            value: object = parse_json(raw)
        except ValueError:
            value = None
        headers = {name.lower(): text for name, text in response.headers.items()}
        return JsonResponse(response.status_code, as_object(value), headers)


def _body(response: httpx2.Response) -> bytes:
    """What is answered, no more of it than is read; nothing where that is not all."""
    body = bytearray()
    if is_coding_known(response.headers):
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return b""
    return bytes(body)


def _bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def network_exchange() -> ProviderExchange:
    """Over the network; a device's owner is shown who asks, so it says what it is."""
    system = platform.system() or "unknown system"
    headers = {"User-Agent": f"pdpp ({system})", "Accept-Encoding": "gzip"}
    client = httpx2.Client(
        timeout=HTTP_SECONDS,
        follow_redirects=False,
        headers=headers,
        limits=httpx2.Limits(max_connections=1),
    )
    return ProviderExchange(client)


def unavailable(message: str) -> ProviderUnavailable:
    """The error of a server that does not answer as it should."""
    return ProviderUnavailable(message, "Check that the server runs and try again.")
