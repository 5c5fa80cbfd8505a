"""The outermost application: origin, request id, address limits, then the part that answers.

Rule: what is settled here (`scope["state"]`: origin, request_id, client_address) is never settled
again inside; the in-process transport of the hosted adapter enters behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from hashlib import blake2b
from secrets import token_hex

import msgspec
import orjson
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from personal_server.errors import MethodNotAllowed, PersonalServerError, RateLimitExceeded
from personal_server.web.cross_origin import (
    ALLOWED_HEADERS,
    CORS_HEADERS,
    answer_preflight,
    is_public_document,
    readable_anywhere,
)
from personal_server.web.error_responses import error_body
from personal_server.web.limits import FailedBearers
from personal_server.web.origins import OriginPolicy
from personal_server.web.requests import PDPP_VERSION, echoed_request_id
from personal_server.web.responses import JSON_TYPE, Answer, Reply
from personal_server.web.routing import Match, Route

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


# Rendering: a route's reply becomes an answer with validator, caching and content type.
#
# Rule: what may be kept, and how it is checked again, is read from the route's declaration.


def preflight(match: Match) -> Answer:
    """The answer to a browser that asks before it calls.

    Source: docs/contract/resource-server.md 1.4.
    """
    return Answer(
        204,
        [
            *CORS_HEADERS,
            ("Access-Control-Allow-Methods", ", ".join(match.cors_methods)),
            ("Access-Control-Allow-Headers", ALLOWED_HEADERS),
            ("Access-Control-Max-Age", "600"),
        ],
    )


def rendered(route: Route, reply: Reply) -> Answer:
    """The answer of a reply: body, content type, caching, validator."""
    body = reply.content or b""
    headers = [("Cache-Control", route.caching.value), *reply.headers]
    if reply.body is not None:
        body = msgspec.json.encode(reply.body)
    if reply.status != 204:
        headers.insert(0, ("Content-Type", reply.content_type))
    etag = reply.etag
    if route.etag and etag is None and reply.status == 200:
        etag = f'W/"{blake2b(body, digest_size=16).hexdigest()}"'
    if etag is not None:
        headers.append(("ETag", etag))
    return Answer(reply.status, headers, body, reply.chunks, reply.length_bytes)


def is_unchanged(headers: dict[str, str], answer: Answer) -> bool:
    """Whether the caller already has it (`If-None-Match`, weak comparison)."""
    sent = headers.get("if-none-match")
    etag = next((value for name, value in answer.headers if name == "ETag"), None)
    if sent is None or etag is None or answer.status not in (200, 206):
        return False
    known = {part.strip().removeprefix("W/") for part in sent.split(",")}
    return "*" in known or etag.removeprefix("W/") in known


def unchanged(answer: Answer) -> Answer:
    """The 304 of an answer: its headers without those of the body."""
    dropped = ("Content-Type", "Content-Range", "Content-Disposition")
    kept = [(name, value) for name, value in answer.headers if name not in dropped]
    return Answer(304, kept)


def is_json(answer: Answer) -> bool:
    """Whether the body is one of our JSON bodies."""
    return ("Content-Type", JSON_TYPE) in answer.headers
