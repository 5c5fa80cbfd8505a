"""Finding a server's endpoints from its address.

Rule: every name must be the one asked for, byte for byte, and every endpoint on the issuer's own
origin; a credential is never sent anywhere else.  Source: AS contract 14.1, "Flow".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from personal_server.rs_client.credentials import ConnectNotSupported, MetadataFailure
from personal_server.rs_client.exchange import Exchange, Reply

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
