"""The outermost application: origin, request id, address limits, then the part that answers.

Rule: what is settled here (`scope["state"]`: origin, request_id, client_address) is never settled
again inside; the in-process transport of the hosted adapter enters behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from secrets import token_hex

import orjson
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from personal_server.app.cross_origin import (
    answer_preflight,
    is_public_document,
    readable_anywhere,
)
from personal_server.app.failed_bearers import FailedBearers
from personal_server.app.origin import OriginPolicy
from personal_server.domain.wire import PDPP_VERSION, echoed_request_id
from personal_server.errors import MethodNotAllowed, PersonalServerError, RateLimitExceeded
from personal_server.resource_server.boundary import error_body

Lifetime = Callable[[], AbstractAsyncContextManager[None]]


class Outermost:
    """One ASGI application of several parts, chosen by the first path segment."""

    def __init__(
        self,
        policy: OriginPolicy,
        parts: Sequence[tuple[frozenset[str], ASGIApp]],
        otherwise: ASGIApp,
        failed_bearers: FailedBearers,
        lifetime: Lifetime = nullcontext,
    ) -> None:
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
            await self._respond(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._lifetime():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        request_id = echoed_request_id(headers) or f"req_{token_hex(12)}"
        send = _with_fixed_headers(send, request_id)
        try:
            address = self._settle(scope, headers, request_id)
        except PersonalServerError as error:
            await _refuse(error, request_id, (), send)
            return
        if is_public_document(scope["path"]):
            send = readable_anywhere(send)
            if scope["method"] == "OPTIONS":
                await answer_preflight(send)
                return
        if headers.get("authorization", "")[:7].lower() == "bearer ":
            send = self._limiting_refusals(send, address, request_id)
        await self._part_of(scope)(scope, receive, send)

    def _settle(self, scope: Scope, headers: Mapping[str, str], request_id: str) -> str:
        if scope["path"] == "/healthz":
            scope["state"] = {"request_id": request_id}
            return ""
        peer = (scope.get("client") or ("", 0))[0]
        address = self._policy.client_address(peer, headers)
        scope["state"] = {
            **scope.get("state", {}),
            "origin": self._policy.origin_of(peer, scope["scheme"], headers),
            "request_id": request_id,
            "client_address": address,
        }
        return address

    def _part_of(self, scope: Scope) -> ASGIApp:
        segments = scope["path"].split("/", 3)
        if segments[1] == "healthz":
            return _healthy
        first = "/".join(segments[1:3]) if segments[1] == ".well-known" else segments[1]
        return self._parts.get(first, self._otherwise)

    def _limiting_refusals(self, send: Send, address: str, request_id: str) -> Send:
        """Turn a refused bearer into a 429 where too many were refused before."""
        limited = False

        async def limiting(message: Message) -> None:
            nonlocal limited
            if message["type"] == "http.response.start" and message["status"] == 401:
                try:
                    self._failed.count(address)
                except RateLimitExceeded as error:
                    limited = True
                    await _refuse(error, request_id, _standing(message), send)
            if not limited:
                await send(message)

        return limiting


def _standing(message: Message) -> list[tuple[bytes, bytes]]:
    """The headers that every answer of a path has, whatever its status."""
    kept = (b"link", b"vary", b"access-control-allow-origin", b"access-control-expose-headers")
    return [(name, value) for name, value in message["headers"] if name.lower() in kept]


async def _healthy(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    if scope["method"] in ("GET", "HEAD"):
        body = b"" if scope["method"] == "HEAD" else orjson.dumps({"status": "ok"})
        await _answer(200, body, (), send)
        return
    refusal = MethodNotAllowed("This address takes GET.")
    await _refuse(refusal, scope["state"]["request_id"], [(b"allow", b"GET, HEAD")], send)


async def _refuse(
    error: PersonalServerError,
    request_id: str,
    standing: Sequence[tuple[bytes, bytes]],
    send: Send,
) -> None:
    wait = error.members.get("retry_after_seconds")
    retry = () if wait is None else ((b"retry-after", str(wait).encode()),)
    await _answer(error.status, error_body(error, request_id), (*standing, *retry), send)


async def _answer(
    status: int, body: bytes, extra: Sequence[tuple[bytes, bytes]], send: Send
) -> None:
    headers = [
        (b"content-type", b"application/json; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
