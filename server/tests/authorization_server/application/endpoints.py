"""Every form endpoint with a good call, and what each parameter's faults are answered with.

Shapes: of a parameter, `missing` and `wrong` are the error of the OAuth family, `OK` where the
contract ignores or defaults it.  `WRONG` is no word of any protocol.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.tests.authorization_server.conftest import DEVICE, OWNER, VERIFIER, entry

OK = ""
WRONG = "\x00[\ufffd'\"<script>\U0001f642"
MCP = "https://me.example/mcp"
Form = dict[str, str]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a good call.  `before_redirect`: its faults are pages at the endpoint."""

    name: str
    missing: str = OK
    wrong: str = OK
    before_redirect: bool = False


@dataclass(frozen=True)
class Endpoint:
    """A path, what of the form is constant, and its parameters; `ok` is the good status."""

    name: str
    path: str
    ok: int
    parameters: tuple[Parameter, ...]
    constant: Mapping[str, str] = field(default_factory=dict[str, str])

    def __str__(self) -> str:
        return self.name


DETAILS = json.dumps([entry()])
DISPLAY = json.dumps({"name": "Notes"})
SELECTING = (
    Parameter("resource", wrong="invalid_target"),
    Parameter("scope"),
    Parameter("authorization_details", wrong="invalid_authorization_details"),
    Parameter("client_display", wrong="invalid_request"),
)
ASKING = (
    Parameter("response_type", "unsupported_response_type", "unsupported_response_type"),
    Parameter("code_challenge", "invalid_request", "invalid_request"),
    Parameter("code_challenge_method", "invalid_request", "invalid_request"),
    Parameter("state"),
    Parameter("prompt"),
    Parameter("response_mode", wrong="invalid_request"),
    *SELECTING,
)
ASKED = {
    "response_type": "code",
    "code_challenge_method": "S256",
    "state": "st",
    "prompt": "consent",
    "response_mode": "query",
    "resource": MCP,
    "scope": "pdpp:read offline_access",
    "authorization_details": DETAILS,
    "client_display": DISPLAY,
}
CLIENT = Parameter("client_id", "invalid_client", "invalid_client")
ENDPOINTS = (
    Endpoint(
        "authorize",
        "/oauth/authorize",
        303,
        (
            Parameter("client_id", "invalid_client", "invalid_client", True),
            Parameter("redirect_uri", "invalid_redirect_uri", "invalid_redirect_uri", True),
            *ASKING,
        ),
        ASKED,
    ),
    Endpoint(
        "par",
        "/oauth/par",
        201,
        (CLIENT, Parameter("redirect_uri", "invalid_request", "invalid_request"), *ASKING),
        ASKED,
    ),
    Endpoint(
        "device_authorization",
        "/oauth/device_authorization",
        200,
        (CLIENT, *SELECTING),
        {
            "resource": MCP,
            "scope": "pdpp:read",
            "authorization_details": DETAILS,
            "client_display": DISPLAY,
        },
    ),
    Endpoint(
        "token, code",
        "/oauth/token",
        200,
        (
            Parameter("grant_type", "invalid_request", "unsupported_grant_type"),
            CLIENT,
            Parameter("code", "invalid_request", "invalid_grant"),
            Parameter("code_verifier", "invalid_request", "invalid_grant"),
            Parameter("redirect_uri", wrong="invalid_grant"),
            Parameter("resource", wrong="invalid_target"),
        ),
        {"grant_type": "authorization_code", "code_verifier": VERIFIER, "resource": MCP},
    ),
    Endpoint(
        "token, refresh",
        "/oauth/token",
        200,
        (
            Parameter("grant_type", "invalid_request", "unsupported_grant_type"),
            CLIENT,
            Parameter("refresh_token", "invalid_request", "invalid_grant"),
            Parameter("scope"),
            Parameter("resource", wrong="invalid_target"),
        ),
        {"grant_type": "refresh_token", "scope": "pdpp:read", "resource": MCP},
    ),
    Endpoint(
        "token, device",
        "/oauth/token",
        200,
        (
            Parameter("grant_type", "invalid_request", "unsupported_grant_type"),
            CLIENT,
            Parameter("device_code", "invalid_request", "invalid_grant"),
            Parameter("resource", wrong="invalid_target"),
        ),
        {"grant_type": DEVICE, "resource": MCP},
    ),
    Endpoint(
        "revoke",
        "/oauth/revoke",
        200,
        (CLIENT, Parameter("token", "invalid_request"), Parameter("token_type_hint")),
        {"token_type_hint": "refresh_token"},
    ),
    Endpoint(
        "introspect",
        "/introspect",
        200,
        (Parameter("token", "invalid_request"), Parameter("token_type_hint")),
        {"token_type_hint": "access_token"},
    ),
)


async def good_form(app: Any, endpoint: Endpoint) -> Form:
    """A form that the endpoint takes; what it needs is made first."""
    form = {**endpoint.constant, "client_id": app.client_id}
    match endpoint.name:
        case "authorize" | "par":
            form |= {"redirect_uri": app.redirect_uri}
            form |= {"code_challenge": app.parameters()["code_challenge"]}
        case "token, code":
            code = await app.code(authorization_details=DETAILS, resource=MCP)
            form |= {"code": code, "redirect_uri": app.redirect_uri}
        case "token, refresh" | "revoke" | "introspect":
            tokens = await app.connect(authorization_details=DETAILS, resource=MCP)
            held = {"refresh_token": tokens["refresh_token"], "token": tokens["access_token"]}
            names = {parameter.name for parameter in endpoint.parameters}
            form |= {name: value for name, value in held.items() if name in names}
        case "token, device":
            form |= {"client_id": "pdpp-cli", "device_code": await approved_device(app)}
        case _:
            form |= {"client_id": "pdpp-cli"}
    return form


async def approved_device(app: Any) -> str:
    """A device code that its owner allowed."""
    asking = {"client_id": "pdpp-cli", "authorization_details": DETAILS, "resource": MCP}
    codes = (await app.post("/oauth/device_authorization", **asking)).json()
    found = app.server.requesting.find_device(codes["user_code"], OWNER)
    app.server.allow(found.request_id)
    return str(codes["device_code"])
