"""The frame: what every surface does with a request, and the application they stand in.

Rule: the frame owns the steps of a request, from scope to response; a surface gives it a table of
routes and says who calls, what a route answers and how an error looks.  What the outermost
application settles (`scope["state"]`: origin, request_id, client_address) is never settled again
inside; the in-process transport of the hosted adapter enters behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio.to_thread
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pdpp_kernel.errors import (
    InvalidRequest,
    MethodNotAllowed,
    MisdirectedRequest,
    PersonalServerError,
    RateLimitExceeded,
)
from personal_server.web.accept_headers import prefers_html
from personal_server.web.authorization_headers import sent_token
from personal_server.web.cors import (
    is_public_document,
    preflight,
    readable_anywhere,
)
from personal_server.web.error_responses import bare_page, json_error
from personal_server.web.failed_attempts import FailedBearers
from personal_server.web.health import HEALTH_PATHS, Health
from personal_server.web.origins import OriginPolicy
from personal_server.web.requests import PDPP_VERSION, request_id_of
from personal_server.web.surfaces import note
from personal_server.web.traffic import NETWORK, Traffic

# The outermost application: what is wrong with any request, then the surface that answers it.


Lifetime = Callable[[], AbstractAsyncContextManager[None]]


class Application:
    """One ASGI application of several parts, chosen by the first path segment."""

    def __init__(
        self,
        policy: OriginPolicy,
        parts: Sequence[tuple[frozenset[str], ASGIApp]],
        otherwise: ASGIApp,
        failed_bearers: FailedBearers,
        lifetime: Lifetime = nullcontext,
        health: Health | None = None,
        traffic: Traffic | None = None,
    ) -> None:
        self._health = health or Health()
        self._answer = (traffic or Traffic()).measured(NETWORK, self._respond)
        self._policy = policy
        self._lifetime = lifetime
        self._parts = {segment: part for segments, part in parts for segment in segments}
        self._otherwise = otherwise
        self._failed = failed_bearers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live as long as the server; nothing else gets in."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._lifetime():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        request_id = request_id_of(headers)
        send = _with_fixed_headers(send, request_id)
        try:
            _check_form(scope, headers)
            address = self._settle(scope, headers, request_id)
        except PersonalServerError as error:
            note(scope, error=error.code)
            if not isinstance(error, MisdirectedRequest):
                await _refuse(error, request_id, send, Connection="close")
            elif prefers_html(headers.get("accept", "")):
                await _send(bare_page(error), send)
            else:
                await _refuse(error, request_id, send)
            return
        if is_public_document(scope["path"]):
            send = readable_anywhere(send)
            if scope["method"] == "OPTIONS":
                await preflight(("GET", "HEAD"))(scope, receive, send)
                return
        bearer = sent_token(headers.get("authorization"))
        if bearer is not None:
            send = self._limiting_refusals(scope, send, address, bearer)
        await self._part_of(scope)(scope, receive, send)

    def _settle(self, scope: Scope, headers: Mapping[str, str], request_id: str) -> str:
        if scope["path"] in HEALTH_PATHS:
            scope["state"] = {"request_id": request_id}
            return ""
        peer = (scope.get("client") or ("", 0))[0]
        address = self._policy.client_address(peer, headers)
        scope["state"] = {  # made anew: nothing of a request from outside is settled before
            "origin": self._policy.origin_of(peer, scope["scheme"], headers),
            "request_id": request_id,
            "client_address": address,
        }
        return address

    def _part_of(self, scope: Scope) -> ASGIApp:
        if scope["path"] in HEALTH_PATHS:
            return self._answer_health
        segments = scope["path"].split("/", 3)
        first = "/".join(segments[1:3]) if segments[1] == ".well-known" else segments[1]
        first = "~" if first.startswith("~") else first
        return self._parts.get(first, self._otherwise)

    async def _answer_health(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["method"] not in ("GET", "HEAD"):
            refusal = MethodNotAllowed("Call this address with GET.")
            await _refuse(refusal, scope["state"]["request_id"], send, Allow="GET, HEAD")
            return
        note(scope, route=f"GET {scope['path']}")
        # the parts ask the database, which may take its time to be found gone
        response = await anyio.to_thread.run_sync(self._health.response, scope["path"])
        if scope["method"] == "HEAD":
            response.body = b""
        await _send(response, send)

    def _limiting_refusals(self, scope: Scope, send: Send, address: str, bearer: str) -> Send:
        """Turn a refused bearer into a 429 where it was refused too often before."""
        limited = False

        async def limiting(message: Message) -> None:
            nonlocal limited
            if message["type"] == "http.response.start" and message["status"] == 401:
                try:
                    self._failed.count(address, bearer)
                except RateLimitExceeded as error:
                    limited = True
                    note(scope, error=error.code)
                    request_id = scope["state"]["request_id"]
                    await _refuse(error, request_id, send, **_lasting(message))
            if not limited:
                await send(message)

        return limiting


def _check_form(scope: Scope, headers: Mapping[str, str]) -> None:
    """Refuse what is no request for a resource of ours, and a body that two headers measure.

    Source: docs/contract/resource-server.md 1.1.  Raises: InvalidRequest, MethodNotAllowed.
    """
    if scope["method"] == "CONNECT":
        raise MethodNotAllowed("CONNECT is not supported.")
    if not scope["path"].startswith("/"):
        raise InvalidRequest("The request target must be a path.", param="path")
    if "transfer-encoding" in headers and "content-length" in headers:
        raise InvalidRequest(
            "Send either Content-Length or Transfer-Encoding, not both.", param="Content-Length"
        )


def _lasting(message: Message) -> Mapping[str, str]:
    """The headers that every answer of a path has, whatever its status."""
    kept = (b"link", b"vary", b"access-control-allow-origin", b"access-control-expose-headers")
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in message["headers"]
        if name.lower() in kept
    }


async def _refuse(error: PersonalServerError, request_id: str, send: Send, **headers: str) -> None:
    response = json_error(error, request_id)
    response.headers.update({"Cache-Control": "no-store", **headers})
    await _send(response, send)


async def _send(response: Response, send: Send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
    )
    await send({"type": "http.response.body", "body": response.body})


def _with_fixed_headers(send: Send, request_id: str) -> Send:
    async def fixing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.setdefault("Request-Id", request_id)
            headers.setdefault("X-Request-Id", headers["Request-Id"])
            headers.setdefault("PDPP-Version", PDPP_VERSION)
            headers.setdefault("X-Content-Type-Options", "nosniff")
        await send(message)

    return fixing
