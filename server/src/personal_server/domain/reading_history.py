"""How much was read, and what was searched for: figures of a grant's reading, without any content.

Rule: no stored value, key or search word is kept in it; words are known by a salted sketch that
tells whether one was seen before, and ends.
Source: docs/contract/resource-server.md 14.5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from urllib.parse import parse_qsl, urlsplit

import msgspec
from msgspec.structs import astuple

from personal_server.domain.disclosure import DENIED, SERVED, DisclosureEntry
from personal_server.domain.search_words import parse_words

SEARCH_ROUTE = "GET /v1/search"
UNKNOWN = frozenset({"not_found", "blob_not_found"})
_QUERIES = frozenset({"q", "query"})


class ReadingCount(msgspec.Struct, frozen=True):
    """What was read in a span of time.

    Shapes: `empty_searches` found nothing, `new_words` were not searched for before,
        `unknown_keys` are records and blobs asked for that are not there.
    """

    requests: int = 0
    records: int = 0
    size_bytes: int = 0
    searches: int = 0
    empty_searches: int = 0
    new_words: int = 0
    unknown_keys: int = 0

    def __add__(self, other: ReadingCount) -> ReadingCount:
        return ReadingCount(*map(add, astuple(self), astuple(other)))


def held_id(entry: DisclosureEntry) -> str | None:
    """The grant or package that an entry was read under; `None` for the owner."""
    return entry.package_id or entry.grant_id


def count_request(entries: Sequence[DisclosureEntry], new_words: int) -> ReadingCount:
    """What the entries of one request, all under one grant or package, come to."""
    served = [entry for entry in entries if entry.outcome == SERVED]
    records = sum(entry.record_count for entry in served)
    search = bool(served) and served[0].route == SEARCH_ROUTE
    return ReadingCount(
        requests=1,
        records=records,
        size_bytes=sum(entry.size_bytes for entry in served),
        searches=int(search),
        empty_searches=int(search and not all(entry.fields for entry in served)),
        new_words=new_words,
        unknown_keys=int(
            any(e.outcome == DENIED and e.error_code in UNKNOWN and "{" in e.route for e in entries)
        ),
    )


def searched_words(entry: DisclosureEntry) -> frozenset[str]:
    """The words that a search asked for."""
    if entry.detail is None or entry.route != SEARCH_ROUTE:
        return frozenset()
    parameters = parse_qsl(urlsplit(entry.detail.asked).query)
    texts = [value for name, value in parameters if name in _QUERIES]
    tokens = frozenset[str]()
    for text in texts:
        words = parse_words(text)
        for term in (*words.terms, *words.excluded):
            tokens = tokens.union(*(alternative.tokens for alternative in term.alternatives))
    return tokens


# Words seen before: a Bloom filter over salted hashes.  It is of one size whatever was asked, holds
# no word, and errs on one side only: of 10,000 words at most one in a hundred new ones is missed.
SKETCH_BYTES = 12_000
_PROBES = 7


class WordSketch(msgspec.Struct, frozen=True):
    """Which words were seen, as far as a salted filter tells."""

    salt: bytes
    seen: bytes = bytes(SKETCH_BYTES)

    def learn(self, words: Iterable[str]) -> tuple[WordSketch, int]:
        """The sketch with these words, and how many were new."""
        sketch, new = bytearray(self.seen), 0
        for word in words:
            bits = self._bits(word)
            new += any(not sketch[bit // 8] >> bit % 8 & 1 for bit in bits)
            for bit in bits:
                sketch[bit // 8] |= 1 << bit % 8
        return WordSketch(self.salt, bytes(sketch)), new

    def _bits(self, word: str) -> list[int]:
        digest = hashlib.blake2b(word.encode(), key=self.salt, digest_size=4 * _PROBES).digest()
        size = 8 * len(self.seen)
        return [int.from_bytes(digest[at : at + 4]) % size for at in range(0, 4 * _PROBES, 4)]


def by_request(
    entries: Iterable[DisclosureEntry],
) -> Mapping[tuple[str, str], list[DisclosureEntry]]:
    """Entries of grants and packages by these and the request; the owner's are left out."""
    by_id: dict[tuple[str, str], list[DisclosureEntry]] = {}
    for entry in entries:
        held_by = held_id(entry)
        if held_by is not None:
            by_id.setdefault((held_by, entry.request_id), []).append(entry)
    return by_id
