"""Errors on the wire: one translator for each protocol, and the one log line of a failure.

Rule: an error we did not raise on purpose becomes `internal_error` with a constant message; its
own text goes nowhere, since it may quote what it failed on.
Source: docs/contract/resource-server.md 2.1, 3; docs/contract/authorization-server.md 0, 12.2.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Callable, Mapping

import orjson
from starlette.responses import HTMLResponse, Response

from pdpp_kernel.errors import (
    TYPE_OF_STATUS,
    InternalError,
    PersonalServerError,
    UseDpopNonce,
)
from pdpp_kernel.failures import log_failure, places_of
from pdpp_kernel.refused_writes import REASON_OF_ERRNO, refusal_of
from personal_server.web.authorization_headers import challenge, metadata_url
from personal_server.web.byte_ranges import UnsatisfiableRange
from personal_server.web.replies import JSON_TYPE, NO_STORE
from personal_server.web.requests import IncomingRequest
from personal_server.web.responses import page_headers

RETRY_SECONDS = 1
NEXT_STEP = (
    "Authorize this client at the server named in resource_metadata, then repeat the request."
)

ErrorPage = Callable[[IncomingRequest, PersonalServerError], Response]

_log = logging.getLogger(__name__)


def translate(error: Exception, request_id: str) -> PersonalServerError:
    """Our own error as it is, a disk that takes no writes as its refusal; anything else as
    `internal_error`, its place reported.
    """
    if isinstance(error, PersonalServerError):
        return error
    if isinstance(error, OSError) and error.errno in REASON_OF_ERRNO:
        _log.error("%s cannot write at %s", request_id, places_of(error))
        return refusal_of(error)
    log_failure(error, request_id)
    return InternalError("The server made an error. Look for the request id in the server's log.")


def json_error(
    error: PersonalServerError,
    request_id: str,
    origin: str = "",
    *,
    resource: str = "",
    status: int | None = None,
    with_proof: bool = False,
) -> Response:
    """An error of the server family.

    Shapes: a 401 challenges for a bearer where an `origin` is given; `resource` is the path that
        the challenge is for; `status` another one than the error's own, where a surface answers
        so (an ended grant is 401 at `/mcp`); `with_proof` that the token came with one.
    """
    status = status or error.status
    headers = error_headers(error, status)
    members = error_members(error, status)
    if origin and status == 401:
        headers["WWW-Authenticate"] = challenge(error, origin, resource, with_proof=with_proof)
        members["resource_metadata"] = metadata_url(origin, resource)
        members["next_step"] = NEXT_STEP
    body = orjson.dumps({"error": {**members, "request_id": request_id}})
    return Response(body, status, {**headers, "Content-Type": JSON_TYPE})


def error_members(error: PersonalServerError, status: int | None = None) -> dict[str, object]:
    """What an error of the server family says of itself."""
    kind = TYPE_OF_STATUS[status or error.status]
    members: dict[str, object] = {"type": kind, "code": error.code, "message": error.message}
    if error.param is not None:
        members["param"] = error.param
    return {**members, **error.members}


def error_headers(error: PersonalServerError, status: int | None = None) -> dict[str, str]:
    """The headers that belong to an error in every family: waiting time, size of the resource."""
    headers: dict[str, str] = {}
    if (status or error.status) in (429, 503):
        wait = error.members.get("retry_after_seconds", RETRY_SECONDS)
        headers["Retry-After"] = str(wait)
    if isinstance(error, UseDpopNonce):
        headers["DPoP-Nonce"] = error.nonce
    if isinstance(error, UnsatisfiableRange):
        headers["Content-Range"] = f"bytes */{error.size_bytes}"
    return headers


def oauth_error(error: PersonalServerError, request_id: str) -> Response:
    """An error of the OAuth family, where who calls stands in the body: a 401 is 400 here."""
    members: Mapping[str, object] = {
        "error": "server_error" if isinstance(error, InternalError) else error.code,
        "error_description": error.message,
        "request_id": request_id,
        **({} if error.param is None else {"param": error.param}),
        **error.members,
    }
    headers = {**NO_STORE, **error_headers(error), "Content-Type": "application/json"}
    status = 400 if error.status == 401 else error.status
    return Response(orjson.dumps(members), status, headers)


def plain_page(request: IncomingRequest, error: PersonalServerError) -> Response:
    """A page for a browser that cannot be sent back; the composition root may bring a finer one."""
    del request
    return bare_page(error)


def bare_page(error: PersonalServerError) -> Response:
    """An error for a browser, with nothing that would have to be fetched from this server."""
    message = html.escape(error.message)
    step = str(error.members.get("next_step") or "Go back to the app and connect again.")
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Request not usable</title>'
        f'<main data-error="{html.escape(error.code)}"><h1>This request cannot be used</h1>'
        f"<p>{message}</p><p>{html.escape(step)}</p></main></html>"
    )
    headers = {**NO_STORE, **page_headers(), **error_headers(error)}
    return HTMLResponse(page, error.status, headers)
