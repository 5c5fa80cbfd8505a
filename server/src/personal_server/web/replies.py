"""The reply of a route: a status and a JSON body, or bytes, or a stream of them.

Rule: a reply that gives records away names the sources they came from (`disclosed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
from starlette.responses import Response

from pdpp_kernel.wire_objects import ENCODE, WireObject
from personal_server.domain.disclosure import Disclosed

JSON_TYPE = "application/json; charset=utf-8"


class Reply(msgspec.Struct, frozen=True):
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
