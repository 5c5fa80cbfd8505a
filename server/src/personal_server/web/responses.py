"""Sending: a reply becomes status, headers and bytes on the wire.

Rule: every answer carries the fixed headers of docs/contract/resource-server.md 1.3; a body leaves
whole or as a stream of chunks read in worker threads, and a caller who hangs up ends the stream.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import anyio
from isal import isal_zlib
from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Send

from pdpp_kernel.errors import RangeNotSatisfiable
from pdpp_kernel.wire_objects import ENCODE, WireObject
from personal_server.domain.disclosure import Disclosed
from personal_server.web.limits import RateStatus
from personal_server.web.requests import PDPP_VERSION, weights
from personal_server.web.workers import Workers

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
    response: Response, *, bodiless: bool, receive: Receive, send: Send, workers: Workers
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
            await _stream(response.chunks, receive, send, workers)
        await send({"type": "http.response.body", "body": b""})
    finally:
        with anyio.CancelScope(shield=True):
            await workers.step(close_chunks, response.chunks)


async def _stream(chunks: Iterator[bytes], receive: Receive, send: Send, workers: Workers) -> None:
    async with anyio.create_task_group() as tasks:

        async def until_hung_up() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(until_hung_up)
        while chunk := await workers.step(_next_chunk, chunks):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        tasks.cancel_scope.cancel()


def _next_chunk(chunks: Iterator[bytes]) -> bytes:
    return next(chunks, b"")


def close_chunks(chunks: Iterator[bytes] | None) -> None:
    """End a stream early: what it holds open is released."""
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


# Byte ranges: which part of a blob a request asks for.
#
# Rule: one range is honoured, several mean the whole, and what cannot be read as a range is
# ignored.
# Source: docs/contract/resource-server.md 12.1; RFC 9110, section 14.


CHUNK_BYTES = 128 * 1024
_ONE_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*\Z", re.IGNORECASE)


def asked_range(headers: Mapping[str, str], etag: str, size_bytes: int) -> range | None:
    """The bytes asked for, or `None` for the whole.

    Raises: UnsatisfiableRange.
    """
    match = _ONE_RANGE.match(headers.get("range", ""))
    if match is None or headers.get("if-range", etag) != etag:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:
        start, stop = max(0, size_bytes - int(last)), size_bytes
    else:
        start, stop = int(first), min(size_bytes, int(last) + 1 if last else size_bytes)
        if last and int(last) < start:
            return None
    if start >= stop:
        raise UnsatisfiableRange(size_bytes)
    return range(start, stop)


class FilePart:
    """A stretch of an open file as chunks; closing it closes the file."""

    def __init__(self, file: BinaryIO, part: range) -> None:
        self._file = file
        self._left = len(part)
        file.seek(part.start)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = self._file.read(min(CHUNK_BYTES, self._left))
        if not chunk:
            raise StopIteration
        self._left -= len(chunk)
        return chunk

    def close(self) -> None:
        """Close the file."""
        self._file.close()


# The reply of a route: a status and a JSON body, or bytes, or a stream of them.
#
# Rule: a reply that gives records away names the sources they came from (`disclosed`).


JSON_TYPE = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a route answers.

    Shapes: exactly one of `body` (a JSON value), `content` (bytes) and `chunks` (a lazy stream of
        bytes, `length_bytes` long if known), or none (no body).  `etag` is the validator as sent;
        routes with `etag=True` and a JSON body get theirs from the body.
    Units: `leaves_at` seconds by `perf_counter`, before which it is not answered.
    """

    body: object = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    chunks: Iterator[bytes] | None = None
    length_bytes: int | None = None
    content_type: str = JSON_TYPE
    etag: str | None = None
    disclosed: Sequence[Disclosed] = ()
    leaves_at: float | None = None


class UnsatisfiableRange(RangeNotSatisfiable):
    """A byte range outside a blob of `size_bytes`."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"The blob has {size_bytes} bytes; ask for a range within.", param="Range")
        self.size_bytes = size_bytes


NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
DOCUMENT = {
    "Cache-Control": "public, max-age=300",
    "Vary": "Host, X-Forwarded-Host, X-Forwarded-Proto",
}


def answer(
    body: WireObject | None,
    status: int = 200,
    headers: Mapping[str, str] = NO_STORE,
) -> Response:
    """A JSON answer; `None` is an empty one."""
    if body is None:
        return Response(None, status, headers)
    return Response(ENCODE(body), status, headers, "application/json")


# Which answers pages of other origins may read, and what they may send: said once for all.
#
# Rule: discovery and the icon are readable by their path alone, so that an unknown document is as
# readable as a known one: a client in a browser must see the 404, not a network error.  No answer
# ever allows credentials.
# Source: docs/contract/resource-server.md 1.4; docs/contract/authorization-server.md 12.4.


REQUEST_HEADERS = (
    "Accept, Authorization, Content-Type, DPoP, If-None-Match, If-Range, Last-Event-ID,"
    " MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, PDPP-Tool, PDPP-Version, Range,"
    " Request-Id, X-Request-Id"
)
RESPONSE_HEADERS = (
    "DPoP-Nonce, ETag, Link, MCP-Protocol-Version, PDPP-Version, RateLimit-Limit,"
    " RateLimit-Remaining, RateLimit-Reset, Request-Id, Retry-After, WWW-Authenticate, X-Request-Id"
)
MAX_AGE_SECONDS = 600


def readable_by(origin: str) -> Mapping[str, str]:
    """The headers that let pages of an origin (`*`: of any) read an answer."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": RESPONSE_HEADERS,
    }


READABLE_ANYWHERE = readable_by("*")


def preflight(methods: Iterable[str]) -> Response:
    """The answer to a browser that asks before it calls; who may is said by `readable_by`."""
    headers = {
        "Access-Control-Allow-Methods": ", ".join(methods),
        "Access-Control-Allow-Headers": REQUEST_HEADERS,
        "Access-Control-Max-Age": str(MAX_AGE_SECONDS),
    }
    return Response(None, 204, headers)


def is_public_document(path: str) -> bool:
    """Whether a path is one of discovery or the icon."""
    return path.startswith("/.well-known/") or path == "/icon.svg"


def readable_anywhere(send: Send) -> Send:
    """Let browsers hand the answer to whichever page asked."""

    async def readable(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(READABLE_ANYWHERE)
        await send(message)

    return readable
