"""Bearer credentials: from the `Authorization` header to what the token stands for.

Rule: this module knows the header's syntax and the challenge; what a token stands for is known to
whoever the surface hands in.  Cookies and query parameters are never credentials.
"""

from __future__ import annotations

import re

from personal_server.errors import AuthenticationRequired, InvalidToken, PersonalServerError

_CREDENTIALS = re.compile(r"(?i:bearer) +([A-Za-z0-9._~+/=-]{1,4096}) *\Z")


def bearer_token(authorization: str | None) -> str:
    """The token of an `Authorization` header.

    Raises: AuthenticationRequired (none, an empty one, or another scheme), InvalidToken (bearer,
        not a token).
    """
    scheme, _, token = (authorization or "").partition(" ")
    if authorization is None or scheme.lower() != "bearer" or not token.strip():
        raise AuthenticationRequired("Send an access token: Authorization: Bearer <token>.")
    match = _CREDENTIALS.match(authorization)
    if match is None:
        raise InvalidToken("The bearer token is malformed; authorize again.")
    return match.group(1)


def metadata_url(origin: str) -> str:
    """Where the protected resource describes itself."""
    return f"{origin}/.well-known/oauth-protected-resource"


def challenge(error: PersonalServerError, origin: str) -> str:
    """`WWW-Authenticate` of a 401.  Source: docs/contract/resource-server.md 3."""
    text = f'Bearer resource_metadata="{metadata_url(origin)}", scope="pdpp:read"'
    if isinstance(error, InvalidToken):
        text += ', error="invalid_token", error_description="The access token is not valid here."'
    return text
