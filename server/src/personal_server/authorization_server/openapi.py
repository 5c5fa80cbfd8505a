"""The endpoints in OpenAPI's words; the composition root puts them beside those of `/v1`.

Rule: a form lists every parameter that its endpoint reads; an answer is described by the struct
that is sent.
The error family of `/v1` (`Error`) is named, and described there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import msgspec

from pdpp_kernel.status_phrases import status_phrase
from pdpp_kernel.wire_objects import WireObject
from personal_server.authorization_server.authorization_endpoint import PushedRequest
from personal_server.authorization_server.device import ShownDeviceCodes
from personal_server.authorization_server.grants import EndedGrant, EndedPackage, ShownAccess
from personal_server.authorization_server.introspection import Introspection
from personal_server.authorization_server.metadata import KEYS_PATH, AuthorizationServer, KeySet
from personal_server.authorization_server.registration import RegisteredClient
from personal_server.authorization_server.token_endpoint import IssuedTokens
from personal_server.consent.client_registration import GRANT_TYPES
from personal_server.web.forms import FORM, JSON
from personal_server.web.json_schemas import Components, JsonSchema, component_name

Shape = Mapping[str, object]
Answer = type[WireObject]

TAG = "Authorization"
TEXT: Shape = {"type": "string"}
ADDRESS: Shape = {"type": "string", "format": "uri"}
NUMBER: Shape = {"type": "integer"}
FLAG: Shape = {"type": "boolean"}
INSTANT: Shape = {"type": "string", "format": "date-time"}
ANYTHING: Shape = {"type": "object", "additionalProperties": True}
SECURITY_SCHEMES: Mapping[str, Shape] = {"introspection": {"type": "http", "scheme": "basic"}}
_OAUTH, _SERVER = "OAuthError", "Error"
_RATED = (400, 413, 429, 500, 503)


def _list_of(items: Shape) -> Shape:
    return {"type": "array", "items": items}


def _word(*words: str) -> Shape:
    return {"type": "string", "enum": list(words)}


def _said(shape: Shape, description: str) -> Shape:
    return {**shape, "description": description}


def _object(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    members = {**required, **(optional or {})}
    return {"type": "object", "properties": members, "required": list(required)}


DETAILS = _said(TEXT, "What the app asks for: a JSON array of selections.")
PROOF: Mapping[str, Shape] = {
    "client_assertion_type": TEXT,
    "client_assertion": _said(TEXT, "A signed JWT of a client that has keys."),
}
SELECTING: Mapping[str, Shape] = {
    "scope": TEXT,
    "resource": _said(_list_of(ADDRESS), "Which resource the token is for."),
    "authorization_details": DETAILS,
    "client_display": _said(TEXT, "How the app wants to be shown: a JSON object."),
}
ASKING: Mapping[str, Shape] = {
    "response_type": _word("code"),
    "code_challenge": TEXT,
    "code_challenge_method": _word("S256"),
    "redirect_uri": ADDRESS,
}
ALSO_ASKING: Mapping[str, Shape] = {
    "response_mode": _word("query"),
    "state": TEXT,
    "prompt": TEXT,
    **SELECTING,
}
CLIENT: Mapping[str, Shape] = {"client_id": TEXT}
TOKEN: Mapping[str, Shape] = {"token": TEXT}
HINT: Mapping[str, Shape] = {"token_type_hint": TEXT}
REGISTRATION: Mapping[str, Shape] = {
    "client_name": TEXT,
    "redirect_uris": _list_of(TEXT),
    "grant_types": _list_of(TEXT),
    "response_types": _list_of(TEXT),
    "scope": TEXT,
    "contacts": _list_of(TEXT),
    **dict.fromkeys(("application_type", "software_id", "software_version"), TEXT),
    **dict.fromkeys(("client_uri", "logo_uri", "policy_uri", "tos_uri"), ADDRESS),
}


class OAuthError(WireObject):
    """What an error of the OAuth family says of itself.  Units: `retry_after_seconds`."""

    component: ClassVar = "OAuthError"

    error: str
    error_description: str
    request_id: str
    param: str | None = None
    reason: str | None = None
    allowed_values: Sequence[str] | None = None
    retry_after_seconds: int | None = None
    limit: str | None = None


class Operation(msgspec.Struct, frozen=True):
    """One endpoint.

    Shapes: `answer` is the struct that is sent (`None`: no JSON body) for status `success`;
        `family` is that of its errors; `tokens` and `security` as in the description of `/v1`;
        `page` answers in HTML where a browser asks.
    """

    method: str
    path: str
    name: str
    summary: str
    success: int
    answer: Answer | None
    family: str = _SERVER
    refusals: tuple[int, ...] = (400, 500)
    body: Shape | None = None
    parameters: Sequence[Shape] = ()
    tokens: str = "none"
    security: str | None = None
    page: bool = False


def _form(required: Mapping[str, Shape], optional: Mapping[str, Shape]) -> Shape:
    return {"required": True, "content": {FORM: {"schema": _object(required, optional)}}}


def _query(required: Mapping[str, Shape], optional: Mapping[str, Shape]) -> list[Shape]:
    return [
        {"name": name, "in": "query", "required": name in required, "schema": shape}
        | {"description": shape.get("description", "As in OAuth.")}
        for name, shape in {**required, **optional}.items()
    ]


def _ending(kind: str, path: str, variable: str, answer: Answer) -> Operation:
    return Operation(
        "POST",
        path,
        f"end{kind}",
        f"Ends a {kind.lower()}; the app that has it or the owner can call this.",
        200,
        answer,
        refusals=(401, 403, 404, 500, 503),
        parameters=[{"name": variable, "in": "path", "required": True, "schema": TEXT}],
        tokens="client, mcp_package or owner",
        security="bearer",
    )


REGISTER = Operation(
    "POST",
    "/oauth/register",
    "registerClient",
    "Registers a public client.",
    201,
    RegisteredClient,
    _OAUTH,
    _RATED,
    {"required": True, "content": {JSON: {"schema": _object({}, REGISTRATION)}}},
)
OPERATIONS = (
    Operation(
        "GET",
        "/.well-known/oauth-authorization-server",
        "describeAuthorizationServer",
        "Metadata of this server as an OAuth server.",
        200,
        AuthorizationServer,
    ),
    Operation(
        "GET",
        KEYS_PATH,
        "listSigningKeys",
        "The keys that verify receipts.",
        200,
        KeySet,
    ),
    Operation(
        "GET",
        "/oauth/authorize",
        "authorize",
        "Page to which an app sends the owner's browser.",
        303,
        None,
        _OAUTH,
        (400, 429, 500, 503),
        parameters=_query(CLIENT, {"request_uri": TEXT, **ASKING, **ALSO_ASKING}),
        page=True,
    ),
    Operation(
        "POST",
        "/oauth/par",
        "pushAuthorizationRequest",
        "Stores the request of an app before the app opens the browser.",
        201,
        PushedRequest,
        _OAUTH,
        _RATED,
        _form({**CLIENT, **ASKING}, {**ALSO_ASKING, **PROOF}),
    ),
    Operation(
        "POST",
        "/oauth/token",
        "issueTokens",
        "Exchanges a code, a device code or a refresh token for tokens.",
        200,
        IssuedTokens,
        _OAUTH,
        _RATED,
        _form(
            {"grant_type": _word(*GRANT_TYPES)},
            {
                **dict.fromkeys(("code", "code_verifier", "refresh_token", "device_code"), TEXT),
                "redirect_uri": ADDRESS,
                "resource": SELECTING["resource"],
                "scope": TEXT,
                **CLIENT,
                **PROOF,
            },
        ),
    ),
    Operation(
        "POST",
        "/oauth/device_authorization",
        "authorizeDevice",
        "Codes for a device without a browser.",
        200,
        ShownDeviceCodes,
        _OAUTH,
        _RATED,
        _form(CLIENT, {**SELECTING, **PROOF}),
    ),
    Operation(
        "POST",
        "/oauth/revoke",
        "revokeToken",
        "Ends the caller's own token.",
        200,
        None,
        _OAUTH,
        _RATED,
        _form({**TOKEN, **CLIENT}, {**HINT, **PROOF}),
    ),
    Operation(
        "POST",
        "/introspect",
        "introspectToken",
        "What a token allows, for a separate resource server.",
        200,
        Introspection,
        refusals=(401, *_RATED),
        body=_form(TOKEN, HINT),
        security="introspection",
    ),
    Operation(
        "GET",
        "/grants/current",
        "readAccess",
        "What the caller's own token allows.",
        200,
        ShownAccess,
        refusals=(401, 403, 500, 503),
        tokens="client or mcp_package",
        security="bearer",
    ),
    _ending("Grant", "/grants/{grant_id}/revoke", "grant_id", EndedGrant),
    _ending("Package", "/grant-packages/{package_id}/revoke", "package_id", EndedPackage),
)


def described_answers() -> Mapping[str, JsonSchema]:
    """The schema of every answer, by its name."""
    components = Components()
    components.describe(OAuthError)
    for operation in (*OPERATIONS, REGISTER):
        if operation.answer is not None:
            components.describe(operation.answer)
    return components.schemas


def described_paths(*, dynamic_registration: bool = True) -> dict[str, dict[str, object]]:
    """Every endpoint by path and method."""
    operations = (*OPERATIONS, REGISTER) if dynamic_registration else OPERATIONS
    return {
        operation.path: {operation.method.lower(): _described(operation)}
        for operation in operations
    }


def _described(operation: Operation) -> dict[str, object]:
    refusals = {
        str(status): _answer(status, operation.family, page=operation.page)
        for status in operation.refusals
    }
    shape = operation.answer
    answer = _answer(operation.success, None if shape is None else component_name(shape))
    described: dict[str, object] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [TAG],
        "x-pdpp-tokens": operation.tokens,
        "security": [] if operation.security is None else [{operation.security: []}],
        "parameters": operation.parameters,
        "responses": {str(operation.success): answer, **refusals},
    }
    return described if operation.body is None else {**described, "requestBody": operation.body}


def _answer(status: int, shape: str | None, *, page: bool = False) -> Shape:
    content: dict[str, Shape] = {"text/html": {}} if page else {}
    if shape is not None:
        content[JSON] = {"schema": {"$ref": f"#/components/schemas/{shape}"}}
    described = {"description": status_phrase(status)}
    return {**described, "content": content} if content else described
