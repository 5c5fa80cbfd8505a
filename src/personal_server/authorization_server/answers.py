"""How OAuth endpoints answer: bodies, headers, and the one translation of errors.

Source: AS contract 0 (error families), 12.4 (cross-origin).
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from personal_server.domain.wire import (
    CROSS_ORIGIN_REQUEST_HEADERS,
    CROSS_ORIGIN_RESPONSE_HEADERS,
    PDPP_VERSION,
)
from personal_server.errors import InternalError, PersonalServerError

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
DOCUMENT = {
    "Cache-Control": "public, max-age=300",
    "Vary": "Host, X-Forwarded-Host, X-Forwarded-Proto",
}
CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": CROSS_ORIGIN_RESPONSE_HEADERS,
}
PREFLIGHT = {
    "Access-Control-Allow-Headers": CROSS_ORIGIN_REQUEST_HEADERS,
    "Access-Control-Max-Age": "600",
}

ErrorPage = Callable[[Request, PersonalServerError], Response]


def answer(
    body: Mapping[str, object] | None,
    status: int = 200,
    headers: Mapping[str, str] = NO_STORE,
) -> Response:
    """A JSON answer; `None` is an empty one."""
    content = b"" if body is None else orjson.dumps(body)
    response = Response(content, status, headers)
    if body is not None:
        response.headers["Content-Type"] = "application/json"
    return response


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


def prefers_json(request: Request) -> bool:
    """Whether the caller asked for JSON rather than a page."""
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


def with_fixed_headers(response: Response, request_id: str) -> Response:
    """Every answer carries these."""
    response.headers["Request-Id"] = request_id
    response.headers["X-Request-Id"] = request_id
    response.headers["PDPP-Version"] = PDPP_VERSION
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _with_wait(response: Response, error: PersonalServerError) -> Response:
    wait = error.members.get("retry_after_seconds")
    if wait is not None:
        response.headers["Retry-After"] = str(wait)
    return response
