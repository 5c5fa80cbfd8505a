"""The error boundary of `/v1`: every error gets its wire form here, and nowhere else.

Rule: an error we did not raise on purpose becomes `internal_error` with a constant message; its
own text goes nowhere.
"""

from __future__ import annotations

import html
import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from personal_server.errors import InternalError, PersonalServerError
from personal_server.web.bearers import challenge, metadata_url
from personal_server.web.responses import NO_STORE, UnsatisfiableRange, answer

RETRY_SECONDS = 1
NEXT_STEP = (
    "Read resource_metadata, follow authorization_servers, and authorize with the scope pdpp:read."
)

_log = logging.getLogger(__name__)


def translate(error: Exception, request_id: str) -> PersonalServerError:
    """Our own error as it is; anything else as `internal_error`, its place reported."""
    if isinstance(error, PersonalServerError):
        return error
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
    _log.error("defect %s in %s at %s", type(error).__name__, request_id, places)
    return InternalError("The server has a defect; the request id finds it in the server's log.")


def error_body(error: PersonalServerError, request_id: str, origin: str = "") -> bytes:
    """The wire form of an error.  Source: docs/contract/resource-server.md 2.1, 3."""
    members: dict[str, object] = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
    }
    if error.param is not None:
        members["param"] = error.param
    members.update(error.members)
    if error.status == 401:
        members["resource_metadata"] = metadata_url(origin)
        members["next_step"] = NEXT_STEP
    members["request_id"] = request_id
    return orjson.dumps({"error": members})


def error_headers(error: PersonalServerError, origin: str) -> list[tuple[str, str]]:
    """The headers that belong to an error: challenge, waiting time, size of the resource."""
    headers: list[tuple[str, str]] = []
    if error.status == 401:
        headers.append(("WWW-Authenticate", challenge(error, origin)))
    if error.status in (429, 503):
        wait = error.members.get("retry_after_seconds", RETRY_SECONDS)
        headers.append(("Retry-After", str(wait)))
    if isinstance(error, UnsatisfiableRange):
        headers.append(("Content-Range", f"bytes */{error.size_bytes}"))
    return headers


# How OAuth endpoints answer: bodies, headers, and the one translation of errors.
#
# Source: docs/contract/authorization-server.md 0 (error families), 12.4 (cross-origin).


ErrorPage = Callable[[Request, PersonalServerError], Response]


def oauth_error(error: PersonalServerError, request_id: str) -> Response:
    """An error of the OAuth family."""
    body: dict[str, object] = {
        "error": "server_error" if isinstance(error, InternalError) else error.code,
        "error_description": error.message,
        "request_id": request_id,
    }
    if error.param is not None:
        body["param"] = error.param
    return _with_wait(answer({**body, **error.members}, error.status), error)


def server_error(error: PersonalServerError, request_id: str) -> Response:
    """An error of the server family."""
    body: dict[str, object] = {"type": error.type, "code": error.code, "message": error.message}
    if error.param is not None:
        body["param"] = error.param
    found = answer({"error": {**body, **error.members, "request_id": request_id}}, error.status)
    return _with_wait(found, error)


def plain_page(request: Request, error: PersonalServerError) -> Response:
    """A page for a browser that cannot be sent back; the composition root may bring a finer one."""
    del request
    message = html.escape(error.message)
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Request not usable</title>'
        f'<main data-error="{html.escape(error.code)}"><h1>This request cannot be used</h1>'
        f"<p>{message}</p><p>Go back to the app and connect again.</p></main></html>"
    )
    headers = {
        **NO_STORE,
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
    }
    return _with_wait(HTMLResponse(page, error.status, headers), error)


def _with_wait(response: Response, error: PersonalServerError) -> Response:
    wait = error.members.get("retry_after_seconds")
    if wait is not None:
        response.headers["Retry-After"] = str(wait)
    return response
