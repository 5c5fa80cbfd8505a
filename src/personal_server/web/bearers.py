"""Bearer credentials: from the `Authorization` header to what the token stands for.

Rule: this module knows the header's syntax and the challenge; what a token stands for is known to
whoever the surface hands in.  Cookies and query parameters are never credentials.
"""

from __future__ import annotations

import re

from personal_server.errors import AuthenticationRequired, InvalidToken, PersonalServerError

_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,4096}\Z")


def sent_bearer(authorization: str | None) -> str | None:
    """What an `Authorization` header sends as a bearer; another scheme or nothing counts as none.

    Source: docs/contract/authorization-server.md 12.2.
    """
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def bearer_token(authorization: str | None) -> str:
    """The token of an `Authorization` header.

    Raises: AuthenticationRequired (none, an empty one, or another scheme), InvalidToken (bearer,
        not a token).
    """
    token = sent_bearer(authorization)
    if token is None:
        raise AuthenticationRequired("Send an access token: Authorization: Bearer <token>.")
    if _TOKEN.match(token) is None:
        raise InvalidToken("The bearer token is malformed; authorize again.")
    return token


def metadata_url(origin: str, resource: str = "") -> str:
    """Where the protected resource of a path (`""`: the origin itself) describes itself."""
    return f"{origin}/.well-known/oauth-protected-resource{resource}"


def challenge(error: PersonalServerError, origin: str, resource: str = "") -> str:
    """`WWW-Authenticate` of a 401; `error` stands in it only when a token was sent.

    Source: docs/contract/resource-server.md 3; docs/contract/authorization-server.md 12.2.
    """
    text = f'Bearer resource_metadata="{metadata_url(origin, resource)}", scope="pdpp:read"'
    if not isinstance(error, AuthenticationRequired):
        text += f', error="invalid_token", error_description="{error.message}"'
    return text
