"""Rendering: a route's reply becomes an answer with validator, caching and content type.

Rule: what may be kept, and how it is checked again, is read from the route's declaration.
"""

from __future__ import annotations

from hashlib import blake2b

import orjson

from personal_server.resource_server.replies import JSON_TYPE, Reply
from personal_server.resource_server.routing import Match, Route
from personal_server.resource_server.sending import ALLOWED_HEADERS, CORS_HEADERS, Answer


def preflight(match: Match) -> Answer:
    """The answer to a browser that asks before it calls.  Source: RS contract 1.4."""
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
        body = orjson.dumps(reply.body)
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
