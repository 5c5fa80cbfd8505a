"""Finding a server's endpoints from its address.

Rule: every name must be the one asked for, byte for byte, and every endpoint on the issuer's own
origin; a credential is never sent anywhere else.
Source: docs/contract/authorization-server.md 14.1, "Flow".
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

import httpx2

from personal_server.rs_client.credentials import (
    ConnectNotSupported,
    MetadataFailure,
    ProviderUnavailable,
)

# One HTTP exchange with a server's JSON endpoints, as values.
#
# Rule: redirects are not followed and nothing of an answer is quoted in an error; a server that
# cannot be reached is the only failure raised.


HTTP_SECONDS = 15.0
MAX_BODY_BYTES = 4 * 1024**2

for _noisy in ("httpx2", "httpcore2"):
    logging.getLogger(_noisy).setLevel(logging.WARNING)  # they log whole URLs at INFO


@dataclass(frozen=True, slots=True)
class Reply:
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
        found = self.body.get("error")
        if isinstance(found, dict):
            found = cast("dict[str, object]", found).get("code")
        return found if isinstance(found, str) else None

    def text(self, name: str) -> str | None:
        """A member that is a non-empty string."""
        value = self.body.get(name)
        return value if isinstance(value, str) and value else None


@dataclass(frozen=True, slots=True)
class Exchange:
    """Asks over one HTTP client.  Every method raises ProviderUnavailable and nothing else."""

    http: httpx2.Client

    def get(self, url: str, bearer: str | None = None) -> Reply:
        """Read a document."""
        headers = {"Accept": "application/json"}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        return self._send(self.http.build_request("GET", url, headers=headers))

    def post_form(self, url: str, form: Mapping[str, str]) -> Reply:
        """Post a form."""
        return self._send(self.http.build_request("POST", url, data=dict(form)))

    def post_json(self, url: str, body: object, bearer: str | None = None) -> Reply:
        """Post a JSON document."""
        headers = {"Accept": "application/json, text/event-stream"}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        return self._send(self.http.build_request("POST", url, json=body, headers=headers))

    def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Reply:
        """Any request; `body` is sent as JSON unless it is `None`."""
        sent = dict(headers or {})
        if body is None:
            return self._send(self.http.build_request(method, url, headers=sent))
        return self._send(self.http.build_request(method, url, headers=sent, json=body))

    def _send(self, request: httpx2.Request) -> Reply:
        try:
            response = self.http.send(request, follow_redirects=False)
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise unavailable("The server could not be reached.") from None
        try:
            value: object = response.json() if len(response.content) <= MAX_BODY_BYTES else None
        except ValueError:
            value = None
        body = cast("dict[str, object]", value) if isinstance(value, dict) else {}
        headers = {name.lower(): text for name, text in response.headers.items()}
        return Reply(response.status_code, body, headers)


def network_exchange() -> Exchange:
    """Over the network; a device's owner is shown who asks, so it says what it is."""
    headers = {"User-Agent": f"pdpp ({platform.system() or 'unknown system'})"}
    client = httpx2.Client(timeout=HTTP_SECONDS, follow_redirects=False, headers=headers)
    return Exchange(client)


def unavailable(message: str) -> ProviderUnavailable:
    """The error of a server that does not answer as it should."""
    return ProviderUnavailable(message, "Check that the server runs and try again.")


RESOURCE_PATH = "/.well-known/oauth-protected-resource"
SERVER_PATH = "/.well-known/oauth-authorization-server"


@dataclass(frozen=True, slots=True)
class Provider:
    """A server's endpoints; `None` where it has none."""

    origin: str
    issuer: str
    token: str
    authorization: str | None
    registration: str | None
    device_authorization: str | None
    pushed_request: str | None
    revocation: str | None
    public_clients: tuple[str, ...] = ()


def discover(exchange: Exchange, origin: str) -> Provider:
    """The endpoints behind an origin.  Raises: MetadataFailure, ProviderUnavailable."""
    resource = _document(exchange.get(origin + RESOURCE_PATH), "protected-resource")
    if resource.text("resource") != origin:
        raise _failure(
            "The server says that it is another one than it was asked for.",
            "Use exactly the address that the server calls its own (PDPP_PUBLIC_URL).",
        )
    servers = resource.body.get("authorization_servers")
    listed = cast("list[object]", servers) if isinstance(servers, list) else []
    if not listed or not isinstance(listed[0], str):
        raise _failure("The server names no authorization server.", "Check its version.")
    issuer = listed[0]
    metadata = _document(exchange.get(issuer.rstrip("/") + SERVER_PATH), "authorization-server")
    if metadata.text("issuer") != issuer:
        raise _failure(
            "The authorization server says that it is another one.",
            "Check the proxy in front of it: its origin must reach the server unchanged.",
        )
    return _provider(origin, issuer, metadata)


def _provider(origin: str, issuer: str, metadata: Reply) -> Provider:
    def endpoint(name: str) -> str | None:
        url = metadata.text(name)
        if url is not None and _origin(url) != _origin(issuer):
            raise _failure(
                f"The server's {name} lies outside its own origin.",
                "Do not connect to it; ask its operator.",
            )
        return url

    token = endpoint("token_endpoint")
    if token is None:
        raise ConnectNotSupported("The server has no token endpoint.", "Check its address.")
    return Provider(
        origin=origin,
        issuer=issuer,
        token=token,
        authorization=endpoint("authorization_endpoint"),
        registration=endpoint("registration_endpoint"),
        device_authorization=endpoint("device_authorization_endpoint"),
        pushed_request=endpoint("pushed_authorization_request_endpoint"),
        revocation=endpoint("revocation_endpoint"),
        public_clients=_public_clients(metadata),
    )


def _public_clients(metadata: Reply) -> tuple[str, ...]:
    listed = metadata.body.get("pdpp_pre_registered_public_clients")
    entries = cast("list[object]", listed) if isinstance(listed, list) else []
    found = [cast("dict[str, object]", e).get("client_id") for e in entries if isinstance(e, dict)]
    return tuple(name for name in found if isinstance(name, str))


def _document(reply: Reply, what: str) -> Reply:
    if not reply.ok or not reply.body:
        raise _failure(
            f"The server has no readable {what} metadata (it answered {reply.status}).",
            "Check the address; it must be the one of a personal server.",
        )
    return reply


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _failure(message: str, next_step: str) -> MetadataFailure:
    return MetadataFailure(message, next_step)
