"""The parameters of an authorization request, judged in the contract's order.

Rule: pure; what is refused here is safe to tell the client at its (already checked) redirect URI.
Source: docs/contract/authorization-server.md 5.1 (checks 4 to 10), 5.3.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

import msgspec
import orjson

from pdpp_kernel.json_shapes import FirstFault, Members, ShapeFault
from pdpp_kernel.oauth_errors import (
    BadRequest,
    InteractionRequired,
    InvalidScope,
    InvalidTarget,
    RequestNotSupported,
    UnsupportedResponseType,
)
from personal_server.consent.client_registration import DISPLAY_URIS
from personal_server.consent.selections import MAX_BYTES, MAX_URI, parse_selections

SCOPE_READ, SCOPE_OFFLINE, SCOPE_OWNER = "pdpp:read", "offline_access", "pdpp:owner"
MCP_PATH, QUERY_PATH = "/mcp", "/v1"
MAX_STATE = 8_192
CODE_PARAMETERS = frozenset(
    {
        "request",
        "response_mode",
        "response_type",
        "code_challenge",
        "code_challenge_method",
        "dpop_jkt",
        "state",
        "scope",
        "authorization_details",
        "client_display",
        "prompt",
    }
)
"""The parameters of a code request, beside those that name the client and what it pushed."""
_DIGEST = re.compile(r"[A-Za-z0-9_-]{43}")
_DISPLAY_LIMITS = {"name": 200, **dict.fromkeys(DISPLAY_URIS, MAX_URI)}
_DEFAULT_PORT = {"http": ":80", "https": ":443"}


class RequestedAccess(msgspec.Struct, frozen=True):
    """What every flow asks for: where it may be used, which scopes, which selection.

    `details` is `None` for a picker request.
    """

    resource: str
    scope: str
    details: list[dict[str, object]] | None
    display: dict[str, object] | None


class CodeRequest(msgspec.Struct, frozen=True):
    """A request of the code flow that passed all checks; `jkt` names the key of its tokens."""

    wanted: RequestedAccess
    state: str | None
    code_challenge: str
    jkt: str | None = None


def parse_code_request(
    parameters: Mapping[str, str],
    resources: Sequence[str],
    origin: str,
    origins: Collection[str],
) -> CodeRequest:
    """The code request of these parameters.

    Raises: RequestNotSupported, BadRequest, UnsupportedResponseType, InvalidScope, InvalidTarget,
        InvalidAuthorizationDetails.
    """
    if "request" in parameters:
        raise RequestNotSupported("The server does not support request objects.", param="request")
    if parameters.get("response_mode", "query") != "query":
        raise BadRequest("The server supports only the response mode query.", param="response_mode")
    if parameters.get("response_type") != "code":
        raise UnsupportedResponseType("The server supports only response_type=code.")
    challenge = parameters.get("code_challenge", "")
    if not _DIGEST.fullmatch(challenge):
        raise BadRequest("The code challenge must have 43 characters.", param="code_challenge")
    if parameters.get("code_challenge_method") != "S256":
        raise BadRequest("The code challenge method must be S256.", param="code_challenge_method")
    jkt = parameters.get("dpop_jkt")
    if jkt is not None and not _DIGEST.fullmatch(jkt):
        raise BadRequest("The thumbprint of the key must have 43 characters.", param="dpop_jkt")
    state = parameters.get("state")
    if state is not None and len(state) > MAX_STATE:
        raise BadRequest(f"At most {MAX_STATE} characters.", param="state")
    if SCOPE_OWNER in parameters.get("scope", "").split():
        raise InvalidScope("An app cannot ask for the owner scope here.", param="scope")
    access = parse_wanted(parameters, resources, origin, origins, default=origin)
    if "none" in parameters.get("prompt", "").split():
        raise InteractionRequired(
            "The server always asks the owner, so prompt=none is not possible."
        )
    return CodeRequest(access, state, challenge, jkt)


def parse_wanted(
    parameters: Mapping[str, str],
    resources: Sequence[str],
    origin: str,
    origins: Collection[str],
    *,
    default: str,
) -> RequestedAccess:
    """Resource, scopes and selection of any flow.

    Raises: InvalidTarget, InvalidAuthorizationDetails, BadRequest.
    """
    resource = canonical_resource(resources, origin, origins) or default
    details = parameters.get("authorization_details")
    if details is not None:
        parse_selections(details)
    return RequestedAccess(
        resource=resource,
        scope=_scope(parameters.get("scope", "")),
        details=None if details is None else orjson.loads(details),
        display=_display(parameters.get("client_display")),
    )


def canonical_resource(
    resources: Sequence[str], origin: str, origins: Collection[str]
) -> str | None:
    """The one form in which an asked resource (RFC 8707) is stored, `None` if none was asked.

    Source: docs/contract/authorization-server.md 5.3.
    Raises: InvalidTarget for two different, a foreign or an unknown one.
    """
    canonical = {_canonical(resource) for resource in resources}
    if not canonical:
        return None
    if len(canonical) > 1:
        raise InvalidTarget("Name exactly one resource.", param="resource")
    resource = canonical.pop()
    ours = {o + path for o in {origin, *origins} for path in ("", MCP_PATH, QUERY_PATH)}
    if resource not in ours:
        raise InvalidTarget("This server does not have the requested resource.", param="resource")
    return resource


def _canonical(resource: str) -> str:
    invalid = InvalidTarget("The resource must be the URL of this server.", param="resource")
    if "#" in resource or "?" in resource:
        raise invalid
    try:
        parts = urlsplit(resource)
        parts.port  # noqa: B018 - reading it is the check
    except ValueError:
        raise invalid from None
    scheme = parts.scheme.lower()
    host = parts.netloc.lower().removesuffix(_DEFAULT_PORT.get(scheme, ""))
    if not scheme or not host or "@" in host:
        raise invalid
    return f"{scheme}://{host}{parts.path.removesuffix('/')}"


def _scope(scope: str) -> str:
    words = scope.split()
    if SCOPE_OWNER in words:
        return SCOPE_OWNER
    return f"{SCOPE_READ} {SCOPE_OFFLINE}" if SCOPE_OFFLINE in words else SCOPE_READ


def _display(text: str | None) -> dict[str, object] | None:
    if text is None:
        return None
    malformed = BadRequest("client_display must be a small JSON object.", param="client_display")
    if len(text) > MAX_BYTES:
        raise malformed
    try:
        display = Members(orjson.loads(text), "", FirstFault())
        display.only((), _DISPLAY_LIMITS)
        return {name: display.text(name, limit=_DISPLAY_LIMITS[name]) for name in display.raw}
    except (orjson.JSONDecodeError, ShapeFault):
        raise malformed from None
