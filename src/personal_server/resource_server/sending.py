"""Sending: a reply becomes status, headers and bytes on the wire.

Rule: every answer carries the fixed headers of section 1.3; a body leaves whole or as a stream of
chunks read in worker threads, and a caller who hangs up ends the stream.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import anyio
from starlette.types import Receive, Send

from personal_server.domain.wire import PDPP_VERSION
from personal_server.resource_server.limits import Standing
from personal_server.resource_server.workers import Workers

COMPRESSED_FROM_BYTES = 1_024
EXPOSED = (
    "Request-Id, X-Request-Id, ETag, Retry-After, WWW-Authenticate, RateLimit-Limit, "
    "RateLimit-Remaining, RateLimit-Reset"
)
ALLOWED_HEADERS = (
    "Authorization, Content-Type, If-None-Match, If-Range, PDPP-Tool, "
    "PDPP-Version, Range, Request-Id, X-Request-Id"
)

_GZIP = re.compile(r"(?:^|[,\s])(?:gzip|\*)\s*(?:;\s*q\s*=\s*([0-9.]+))?\s*(?:,|$)", re.IGNORECASE)


@dataclass(slots=True)
class Answer:
    """What goes over the wire.  Shapes: `chunks`, if any, replaces `body`."""

    status: int
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    body: bytes = b""
    chunks: Iterator[bytes] | None = None
    length_bytes: int | None = None


def fixed_headers(request_id: str) -> list[tuple[str, str]]:
    """The headers of every answer.  Source: RS contract 1.3."""
    return [
        ("Request-Id", request_id),
        ("X-Request-Id", request_id),
        ("PDPP-Version", PDPP_VERSION),
        ("X-Content-Type-Options", "nosniff"),
    ]


def rate_headers(standing: Standing | None) -> list[tuple[str, str]]:
    """What the caller has left; nothing while nothing is limited.  Source: RS contract 16."""
    if standing is None:
        return []
    return [
        ("RateLimit-Limit", str(standing.limit)),
        ("RateLimit-Remaining", str(standing.remaining)),
        ("RateLimit-Reset", str(standing.reset_seconds)),
    ]


CORS_HEADERS = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", EXPOSED))


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether the caller takes gzip."""
    match = _GZIP.search(accept_encoding)
    return match is not None and match.group(1) not in ("0", "0.0", "0.00", "0.000")


def compress(answer: Answer, accept_encoding: str) -> None:
    """Compress a JSON body of 1 KiB or more where accepted.  Source: RS contract 1.4."""
    if len(answer.body) >= COMPRESSED_FROM_BYTES and accepts_gzip(accept_encoding):
        answer.body = gzip.compress(answer.body, compresslevel=1, mtime=0)
        answer.headers.append(("Content-Encoding", "gzip"))


async def send_answer(
    answer: Answer, *, bodiless: bool, receive: Receive, send: Send, workers: Workers
) -> None:
    """Send it; `bodiless` for HEAD keeps all headers."""
    length = answer.length_bytes if answer.chunks is not None else len(answer.body)
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in answer.headers]
    if length is not None and answer.status not in (204, 304):
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.chunks is None:
        body = b"" if bodiless else answer.body
        await send({"type": "http.response.body", "body": body})
        return
    try:
        if not bodiless:
            await _stream(answer.chunks, receive, send, workers)
        await send({"type": "http.response.body", "body": b""})
    finally:
        with anyio.CancelScope(shield=True):
            await workers.step(close_chunks, answer.chunks)


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
