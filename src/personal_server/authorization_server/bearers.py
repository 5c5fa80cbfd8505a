"""Bearers at the authorization server's own resources.  Source: AS contract 10.1, 12.2."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from personal_server.authorization_server.calls import Call
from personal_server.errors import AuthenticationRequired, InvalidToken, PersonalServerError
from personal_server.web.error_responses import server_error

NEXT_STEP = (
    "Authorize this client at the server named in resource_metadata, then repeat the request."
)


def bearer_of(request: Request) -> str | None:
    """The bearer token; another scheme or an empty token counts as missing."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def challenged(call: Call, error: AuthenticationRequired | InvalidToken) -> Response:
    """A 401 that says where to authorize."""
    metadata = f"{call.origin}/.well-known/oauth-protected-resource"
    challenge = f'Bearer resource_metadata="{metadata}", scope="pdpp:read"'
    if isinstance(error, InvalidToken):
        challenge += f', error="invalid_token", error_description="{error.message}"'
    described: PersonalServerError = type(error)(
        error.message, resource_metadata=metadata, next_step=NEXT_STEP
    )
    response = server_error(described, call.request_id)
    response.headers["WWW-Authenticate"] = challenge
    return response
