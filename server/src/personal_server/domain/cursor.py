"""Opaque tokens: where a page, a feed or a search continues, and what that place belongs to.

Rule: a token carries position only, never permission; it is good for exactly the request it was
made for, and the caller learns nothing from it because it is sealed.
Source: docs/contract/resource-server.md 2.7.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol, cast

import msgspec
import orjson

from pdpp_kernel.errors import CursorExpired, InvalidCursor
from pdpp_kernel.texts import message
from personal_server.domain.authority import ReadableSource, ReadAuthority

REQUEST_DIGEST_BYTES = 16
SOURCES_DIGEST_BYTES = 8
MAX_TOKEN_CHARS = 8_192
_MSGPACK_BITS = 63  # of a signed integer; nanoseconds of the year 2263 and later have more
PACKED_CHARS = 64
ALPHABETS = (
    "0123456789abcdef-",
    "0123456789-:.+TZ",
    "0123456789abcdefghijklmnopqrstuvwxyz-_.:@",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_.:@+/=",
)
"""What keys and times are written with: numbers, one after another in every token."""
_LARGE_INTEGER = len(ALPHABETS)  # in the place of the number of an alphabet


class TokenUse(StrEnum):
    """The kinds of opaque token, each with its first letter; one is never taken for another."""

    PAGE = "page"
    FEED = "feed"
    BOOKMARK = "bookmark"
    SEARCH = "search"
    LIST = "list"
    RECEIPT = "receipt"

    @property
    def letter(self) -> str:
        """The first character of every token of this kind."""
        return self.value[0]


class Sealer(Protocol):
    """Authenticated encryption with a server key."""

    def seal(self, use: TokenUse, request: str, content: bytes) -> str:
        """The sealed text of these bytes: readable and changeable by this server alone."""
        ...

    def open(self, use: TokenUse, request: str, token: str) -> bytes | None:
        """The content, or `None` for what this server did not seal for this use and request."""
        ...


class CursorPlace(msgspec.Struct, frozen=True):
    """The content of a token.

    Shapes: `request` and `sources` are digests of what the token is bound to, in hexadecimal;
        `position` holds JSON values whose meaning the use knows.
    """

    request: str
    sources: str
    position: tuple[object, ...]


def seal_place(sealer: Sealer, use: TokenUse, place: CursorPlace) -> str:
    """A token for a place."""
    packed = [_packed_value(value) for value in place.position]
    content = msgspec.msgpack.encode([bytes.fromhex(place.sources), *packed])
    return sealer.seal(use, place.request, content)


def open_place(
    sealer: Sealer, use: TokenUse, token: str, request: str, *, param: str
) -> CursorPlace:
    """The place of a token made for the same request.

    Raises: InvalidCursor for anything malformed, forged, of another use, holder or request.
    """
    content = sealer.open(use, request, token) if len(token) <= MAX_TOKEN_CHARS else None
    if content is None:
        raise InvalidCursor(
            message(
                (
                    "'%(param)s' is not a token that this server made for this "
                    "request. Start again without it."
                ),
                param=param,
            ),
            param=param,
        )
    return unpacked_place(request, content)


def open_page(
    sealer: Sealer,
    use: TokenUse,
    token: str,
    request: str,
    authority: ReadAuthority,
    sources: Iterable[ReadableSource],
) -> CursorPlace:
    """The same of a `cursor` that goes on among the sources it was made for.

    Raises: InvalidCursor, also where the sources are others than they were; CursorExpired where
        they are so because the access was changed since.
    """
    place = open_place(sealer, use, token, request, param="cursor")
    if place.sources != sources_digest(sources):
        raise outlived(authority)
    return place


def outlived(authority: ReadAuthority) -> InvalidCursor | CursorExpired:
    """What a cursor is that was made when other things could be read."""
    refusal = InvalidCursor if authority.lineage is None else CursorExpired
    return refusal(
        "The access has changed since this cursor was made. Start again without the cursor.",
        param="cursor",
        recovery={"cursor": None},
    )


def unpacked_place(request: str, content: bytes) -> CursorPlace:
    """The place in what was sealed for a request."""
    sources, *position = cast("tuple[bytes, *tuple[object, ...]]", msgspec.msgpack.decode(content))
    values = (_unpacked(value) if isinstance(value, bytes) else value for value in position)
    return CursorPlace(request, sources.hex(), tuple(values))


def request_digest(holder: str, route: str, parameters: Iterable[object]) -> str:
    """What a token is bound to: who asks, by which route, for what."""
    return _digest([holder, route, repr(tuple(parameters))], REQUEST_DIGEST_BYTES)


def holder_digest(authority: ReadAuthority) -> str:
    """Hash over who asks, which a successor does not share."""
    return _digest([authority.holder], SOURCES_DIGEST_BYTES)


def projection_digest(sources: Iterable[ReadableSource]) -> str:
    """Hash over the selected readable sources: what could be read, and how much of it."""
    return _digest([_projection(source) for source in sources], SOURCES_DIGEST_BYTES)


def sources_digest(sources: Iterable[ReadableSource]) -> str:
    """The projection digest and the declaration versions."""
    versions = [(*_projection(source), source.declaration_version) for source in sources]
    return _digest(versions, SOURCES_DIGEST_BYTES)


def history_digest(sources: Iterable[ReadableSource], epoch: str, era: str) -> str:
    """The projection digest and the history of changes that a feed is part of."""
    return _digest([projection_digest(sources), epoch, era], SOURCES_DIGEST_BYTES)


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
        *([[limit.field, sorted(map(repr, limit.values))] for limit in source.only]),
        *([] if source.made_of is None else [[_projection(part) for part in source.made_of]]),
    )


def _digest(value: object, size: int) -> str:
    return hashlib.sha256(orjson.dumps(value)).hexdigest()[: 2 * size]


def _packed_value(value: object) -> object:
    """As MessagePack takes it: of `m1` 2 and the bytes of 2584, of 2**63 4 and its bytes."""
    if isinstance(value, str):
        return _packed(value)
    if isinstance(value, int) and value.bit_length() > _MSGPACK_BITS:
        size = value.bit_length() // 8 + 1
        return bytes([_LARGE_INTEGER]) + value.to_bytes(size, signed=True)
    return value


def _packed(text: str) -> bytes | str:
    """The number of an alphabet, and the text as a number in its digits after a 1."""
    numbers = [n for n, alphabet in enumerate(ALPHABETS) if set(text) <= set(alphabet)]
    if not numbers or len(text) > PACKED_CHARS:
        return text
    value = 1
    for character in text:
        value = value * len(ALPHABETS[numbers[0]]) + ALPHABETS[numbers[0]].index(character)
    return bytes(numbers[:1]) + value.to_bytes((value.bit_length() + 7) // 8)


def _unpacked(packed: bytes) -> str | int:
    if packed[0] == _LARGE_INTEGER:
        return int.from_bytes(packed[1:], signed=True)
    alphabet, value, characters = ALPHABETS[packed[0]], int.from_bytes(packed[1:]), list[str]()
    while value > 1:
        value, position = divmod(value, len(alphabet))
        characters.append(alphabet[position])
    return "".join(reversed(characters))
