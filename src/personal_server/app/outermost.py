"""The outermost application: origin, request id, address limits, then the part that answers.

Rule: what is settled here (`scope["state"]`: origin, request_id, client_address) is never settled
again inside; the in-process transport of the hosted adapter enters behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from secrets import token_hex

import orjson
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from personal_server.app.origin import OriginPolicy
from personal_server.domain.wire import PDPP_VERSION, echoed_request_id
from personal_server.errors import PersonalServerError, RateLimitExceeded
from personal_server.resource_server.boundary import error_body

NANOSECONDS = 1_000_000_000
Lifetime = Callable[[], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class FailedBearers:
    """How often each address presented a bearer that was refused; per minute.

    `allowed` 0 switches the limit off.  Source: RS contract 16.
    """

    allowed: int
    clock: Callable[[], int]
    _refusals: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def check(self, address: str) -> None:
        """Raise: RateLimitExceeded."""
        recent = self._recent(address)
        if self.allowed and len(recent) >= self.allowed:
            wait = max(1, 60 - (self.clock() - recent[0]) // NANOSECONDS)
            raise RateLimitExceeded(
                "Too many refused tokens from this address; wait, then use a valid one.",
                retry_after_seconds=wait,
                limit="auth",
            )

    def refused(self, address: str) -> None:
        """Count one more."""
        self._refusals[address] = [*self._recent(address), self.clock()][-self.allowed :]
        if len(self._refusals) > 10_000:
            self._refusals = {a: r for a in self._refusals if (r := self._recent(a))}

    def _recent(self, address: str) -> list[int]:
        oldest = self.clock() - 60 * NANOSECONDS
        return [at for at in self._refusals.get(address, ()) if at > oldest]


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
        address = ""
        try:
            address = self._settle(scope, headers, request_id)
            has_bearer = headers.get("authorization", "")[:7].lower() == "bearer "
            if has_bearer:
                self._failed.check(address)
        except PersonalServerError as error:
            await _refuse(error, request_id, send)
            return
        send = _with_fixed_headers(send, request_id)
        if has_bearer:
            send = self._counting_refusals(send, address)
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

    def _counting_refusals(self, send: Send, address: str) -> Send:
        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] == 401:
                self._failed.refused(address)
            await send(message)

        return counting


async def _healthy(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await _answer(200, orjson.dumps({"status": "ok"}), (), send)


async def _refuse(error: PersonalServerError, request_id: str, send: Send) -> None:
    wait = error.members.get("retry_after_seconds")
    extra = () if wait is None else ((b"retry-after", str(wait).encode()),)
    fixed = _with_fixed_headers(send, request_id)
    await _answer(error.status, error_body(error, request_id), extra, fixed)


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
