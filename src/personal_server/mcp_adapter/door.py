"""What `/mcp` answers before MCP runs: challenges, refusals, headers.

Source: MCP adapter contract 2.2; authorization-server contract 12.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from personal_server.rs_client.json_values import Json
from personal_server.web.cross_origin import (
    CROSS_ORIGIN_REQUEST_HEADERS,
    CROSS_ORIGIN_RESPONSE_HEADERS,
)

body_bytes = 4 * 1024 * 1024
next_step = (
    "Authorize this client at the server named in resource_metadata, then repeat the request."
)
allowed_methods = "POST"
loopback_hosts = frozenset({"localhost", "127.0.0.1", "::1"})
messages = {
    "authentication_error": "This endpoint needs a bearer token.",
    "invalid_token": "The access token is not valid.",
    "grant_revoked": "The owner ended this access.",
    "grant_expired": "This access has ended.",
    "grant_invalid": "This access cannot be used any more.",
}
Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One whole answer of the door."""

    status: int
    body: Json | None
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        return b"" if self.body is None else json.dumps(self.body, separators=(",", ":")).encode()


def metadata_url(origin: str) -> str:
    """Where a client learns how to authorize."""
    return f"{origin}/.well-known/oauth-protected-resource/mcp"


def challenge(origin: str, request_id: str, code: str) -> Answer:
    """A 401; `error` stands in the challenge only when a token was sent."""
    message = messages[code]
    words = f'Bearer resource_metadata="{metadata_url(origin)}", scope="pdpp:read"'
    if code != "authentication_error":
        words += f', error="invalid_token", error_description="{message}"'
    error: Json = {"type": "authentication_error", "code": code, "message": message}
    error["resource_metadata"] = metadata_url(origin)
    error["next_step"] = next_step
    error["request_id"] = request_id
    return Answer(401, {"error": error}, (("WWW-Authenticate", words),))


def refused(
    status: int, code: str, message: str, request_id: str, param: str | None = None
) -> Answer:
    """Any other refusal."""
    kinds = {
        403: "permission_error",
        413: "request_entity_too_large_error",
        503: "api_error",
    }
    error: Json = {"type": kinds.get(status, "invalid_request_error"), "code": code}
    error["message"] = message
    if param is not None:
        error["param"] = param
    error["request_id"] = request_id
    headers = (("Allow", allowed_methods),) if status == 405 else ()
    if status == 503:
        headers = (("Retry-After", "1"),)
    return Answer(status, {"error": error}, headers)


def preflight() -> Answer:
    """The answer to OPTIONS."""
    headers = (
        ("Access-Control-Allow-Methods", allowed_methods),
        ("Access-Control-Allow-Headers", CROSS_ORIGIN_REQUEST_HEADERS),
        ("Access-Control-Max-Age", "600"),
    )
    return Answer(204, None, headers)


def is_allowed_origin(value: str, own: Sequence[str], further: Sequence[str]) -> bool:
    """Whether a browser page of this origin may call."""
    if value in own or value in further:
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.hostname in loopback_hosts and not parts.path


def standing_headers(origin: str, request_id: str, browser_origin: str | None) -> Headers:
    """What stands on every answer of `/mcp` once its origin is known."""
    headers = [
        ("Link", f'<{origin}/icon.svg>; rel="icon"; type="image/svg+xml"'),
        ("Cache-Control", "no-store"),
        ("Request-Id", request_id),
        ("X-Request-Id", request_id),
    ]
    if browser_origin is not None:
        headers += [
            ("Access-Control-Allow-Origin", browser_origin),
            ("Access-Control-Expose-Headers", CROSS_ORIGIN_RESPONSE_HEADERS),
            ("Vary", "Origin"),
        ]
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]


def bearer_in(header: str | None) -> str | None:
    """The token of an Authorization header; another scheme or an empty token counts as none."""
    if header is None:
        return None
    scheme, _, token = header.strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None
