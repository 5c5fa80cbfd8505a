"""A reply of `/v1` becomes a response with validator, caching and content type.

Rule: what may be kept, and how it is checked again, is read from the route's declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b

import msgspec
from starlette.responses import Response

from personal_server.web.replies import JSON_TYPE, Reply
from personal_server.web.responses import ChunkedResponse, close_chunks, compress
from personal_server.web.routes import Route


def respond(
    route: Route, reply: Reply, headers: Mapping[str, str], shown: Callable[[Response], None]
) -> Response:
    """The response of a reply, compressed where accepted; `shown` hears of it unless it is a 304.

    Shapes: headers by lower-case name.  Raises: what `shown` raises.
    """
    response = rendered(route, reply)
    try:
        if is_unchanged(headers, response):
            close_chunks(reply.chunks)
            return unchanged(response)
        shown(response)
    except BaseException:
        close_chunks(reply.chunks)
        raise
    if reply.content_type == JSON_TYPE and reply.chunks is None:
        compress(response, headers.get("accept-encoding", ""))
    return response


def rendered(route: Route, reply: Reply) -> Response:
    """The response of a reply: body, content type, caching, validator."""
    body = reply.content or b""
    if reply.body is not None:
        body = msgspec.json.encode(reply.body)
    headers = {} if reply.status == 204 else {"Content-Type": reply.content_type}
    headers["Cache-Control"] = route.caching.value
    etag = reply.etag
    if route.etag and etag is None and reply.status == 200:
        etag = f'W/"{blake2b(body, digest_size=16).hexdigest()}"'
    if reply.chunks is None:
        response = Response(body, reply.status, headers)
    else:
        response = ChunkedResponse(reply.chunks, reply.length_bytes, reply.status, headers)
    for name, value in reply.headers:
        response.headers.append(name, value)
    if etag is not None:
        response.headers["ETag"] = etag
    return response


def is_unchanged(headers: Mapping[str, str], response: Response) -> bool:
    """Whether the caller already has it (`If-None-Match`, weak comparison)."""
    sent, etag = headers.get("if-none-match"), response.headers.get("etag")
    if sent is None or etag is None or response.status_code not in (200, 206):
        return False
    known = {part.strip().removeprefix("W/") for part in sent.split(",")}
    return "*" in known or etag.removeprefix("W/") in known


def unchanged(response: Response) -> Response:
    """The 304 of a response: its headers without those of the body."""
    dropped = (b"content-type", b"content-length", b"content-range", b"content-disposition")
    kept = Response(None, 304)
    kept.raw_headers.extend(pair for pair in response.raw_headers if pair[0] not in dropped)
    return kept
