"""Opaque tokens: where a page, a feed or a search continues, and what that place belongs to.

Rule: a token carries position only, never permission; it is good for exactly the request it was
made for, and the caller learns nothing from it because it is sealed.
Source: docs/contract/resource-server.md 2.7.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, cast

import orjson

from personal_server.domain.authority import ReadableSource
from personal_server.errors import InvalidCursor

DIGEST_BYTES = 12
MAX_TOKEN_CHARS = 8_192


class TokenUse(StrEnum):
    """The kinds of opaque token; one is never taken for another."""

    PAGE = "page"
    FEED = "feed"
    BOOKMARK = "bookmark"
    SEARCH = "search"
    LIST = "list"


class Sealer(Protocol):
    """Authenticated encryption with a server key."""

    def seal(self, use: TokenUse, content: bytes) -> str:
        """An opaque token."""
        ...

    def open(self, use: TokenUse, token: str) -> bytes | None:
        """The content, or `None` for anything this server did not seal for this use."""
        ...


@dataclass(frozen=True, slots=True)
class CursorPlace:
    """The content of a token.

    Shapes: `request` and `sources` are digests of what the token is bound to; `position` is a
        list of JSON values whose meaning the use knows.
    """

    request: str
    sources: str
    position: tuple[object, ...]


def seal_place(sealer: Sealer, use: TokenUse, place: CursorPlace) -> str:
    """A token for a place."""
    content = [place.request, place.sources, list(place.position)]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return sealer.seal(use, text.encode())


def open_place(
    sealer: Sealer, use: TokenUse, token: str, request: str, *, param: str
) -> CursorPlace:
    """The place of a token made for the same request.

    Raises: InvalidCursor for anything malformed, forged, of another use, holder or request.
    """
    content = sealer.open(use, token) if len(token) <= MAX_TOKEN_CHARS else None
    if content is None:
        raise _not_ours(param)
    bound, sources, position = cast("tuple[str, str, list[object]]", json.loads(content))
    if bound != request:
        raise _not_ours(param)
    return CursorPlace(bound, sources, tuple(position))


def request_digest(holder: str, route: str, asked: Iterable[object]) -> str:
    """What a token is bound to: who asks, by which route, for what."""
    return _digest([holder, route, repr(tuple(asked))])


def projection_digest(sources: Iterable[ReadableSource]) -> str:
    """Hash over the selected readable sources: what could be read, and how much of it."""
    return _digest([_projection(source) for source in sources])


def sources_digest(sources: Iterable[ReadableSource]) -> str:
    """The projection digest and the declaration versions."""
    return _digest([(*_projection(source), source.declaration_version) for source in sources])


def sources_changed(param: str = "cursor") -> InvalidCursor:
    """The refusal when the readable sources are others than they were."""
    return InvalidCursor(
        "What this cursor may read has changed; start again without it.",
        param=param,
        recovery={"cursor": None},
    )


def _projection(source: ReadableSource) -> tuple[object, ...]:
    constraint = source.time_constraint
    bounds = None
    if constraint is not None:
        bounds = [constraint.field, str(constraint.since_ns), str(constraint.until_ns)]
    resources = None if source.resources is None else sorted(source.resources)
    return (
        source.grant_id,
        source.connection_id,
        source.stream,
        list(source.fields),
        bounds,
        resources,
        *([] if source.made_of is None else [[_projection(each) for each in source.made_of]]),
    )


def _digest(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value)).hexdigest()[: 2 * DIGEST_BYTES]


def _not_ours(param: str) -> InvalidCursor:
    return InvalidCursor(
        f"'{param}' is not a token of this server for this request; start again without it.",
        param=param,
    )
