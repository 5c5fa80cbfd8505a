"""Sending: a reply becomes status, headers and bytes on the wire.

Rule: every answer carries the fixed headers of docs/contract/resource-server.md 1.3; a body leaves
whole or as a stream of chunks read in threads, and a caller who hangs up ends the stream.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping

import anyio
from isal import isal_zlib
from starlette.responses import Response
from starlette.types import Message, Receive, Send

from personal_server.web.accept_headers import weights
from personal_server.web.call_capacity import CallThreads
from personal_server.web.limits import RateStatus
from personal_server.web.requests import PDPP_VERSION

COMPRESSED_FROM_BYTES = 1_024
_GZIP = 16 + 15  # the largest window


class ChunkedResponse(Response):
    """A response whose body is a lazy stream of bytes, `length_bytes` long if that is known."""

    def __init__(
        self,
        chunks: Iterator[bytes],
        length_bytes: int | None,
        status: int,
        headers: Mapping[str, str],
    ) -> None:
        super().__init__(None, status, headers)
        del self.headers["content-length"]
        if length_bytes is not None:
            self.headers["Content-Length"] = str(length_bytes)
        self.chunks = chunks
        self.length_bytes = length_bytes


def set_fixed_headers(response: Response, request_id: str) -> None:
    """The headers of every answer.  Source: docs/contract/resource-server.md 1.3."""
    response.headers["Request-Id"] = request_id
    response.headers["X-Request-Id"] = request_id
    response.headers["PDPP-Version"] = PDPP_VERSION
    response.headers["X-Content-Type-Options"] = "nosniff"


def page_headers(**directives: str) -> dict[str, str]:
    """The headers of every page: it loads nothing that `directives` do not name, and no other
    page may frame it.

    Shapes: `directives` are those of `Content-Security-Policy`, `_` for `-`.
    Source: docs/contract/authorization-server.md 13.4.
    """
    policy = {name.replace("_", "-"): value for name, value in directives.items()}
    policy = {"default-src": "'none'", **policy, "frame-ancestors": "'none'", "base-uri": "'none'"}
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "same-origin",
        "X-Frame-Options": "DENY",
    }


def rate_headers(standing: RateStatus | None) -> Mapping[str, str]:
    """What the caller has left; nothing while nothing is limited.

    Source: docs/contract/resource-server.md 16.
    """
    if standing is None:
        return {}
    return {
        "RateLimit-Limit": str(standing.limit),
        "RateLimit-Remaining": str(standing.remaining),
        "RateLimit-Reset": str(standing.reset_seconds),
    }


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the caller takes gzip."""
    wanted = weights(accept_encoding)
    return wanted.get("gzip", wanted.get("*", 0.0)) > 0


def compress(response: Response, accept_encoding: str) -> None:
    """Compress a body of 1 KiB or more where accepted.

    Source: docs/contract/resource-server.md 1.4.
    """
    if len(response.body) >= COMPRESSED_FROM_BYTES and accepts_gzip(accept_encoding):
        response.body = isal_zlib.compress(response.body, level=1, wbits=_GZIP)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Content-Length"] = str(len(response.body))


class LastingResponse(Response):
    """An answer that `write` sends as it comes, under the headers that stand here besides."""

    def __init__(self, write: Callable[[Send], Awaitable[None]]) -> None:
        super().__init__()
        self.write = write
        del self.headers["content-length"]

    async def pass_on(self, send: Send) -> None:
        """Let it be written; a header that stands here takes the place of one of the same name."""
        own = {name for name, _ in self.raw_headers}

        async def completed(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept = [pair for pair in message["headers"] if pair[0].lower() not in own]
                message = {**message, "headers": [*kept, *self.raw_headers]}
            await send(message)

        await self.write(completed)


async def send_response(
    response: Response, *, bodiless: bool, receive: Receive, send: Send, pool: CallThreads
) -> None:
    """Send it; `bodiless` for HEAD keeps all headers."""
    if isinstance(response, LastingResponse):
        await response.pass_on(send)
        return
    await send(
        {
            "type": "http.response.start",
            "status": response.status_code,
            "headers": response.raw_headers,
        }
    )
    if not isinstance(response, ChunkedResponse):
        body = b"" if bodiless else response.body
        await send({"type": "http.response.body", "body": body})
        return
    try:
        if not bodiless:
            await _stream(response.chunks, receive, send, pool)
        await send({"type": "http.response.body", "body": b""})
    finally:
        with anyio.CancelScope(shield=True):
            await pool.step(close_chunks, response.chunks)


async def _stream(chunks: Iterator[bytes], receive: Receive, send: Send, pool: CallThreads) -> None:
    async with anyio.create_task_group() as tasks:

        async def until_hung_up() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(until_hung_up)
        while chunk := await pool.step(_next_chunk, chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        tasks.cancel_scope.cancel()


def _next_chunk(chunks: Iterator[bytes]) -> bytes:
    return next(chunks, b"")


def close_chunks(chunks: Iterator[bytes] | None) -> None:
    """End a stream early: what it holds open is released."""
    close = getattr(chunks, "close", None)
    if close is not None:
        close()
