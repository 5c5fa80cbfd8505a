"""Rankings of searches, kept in memory for their further pages.

Rule: one for each holder and request, and a bound for each holder and for all, so that asking fills
neither memory nor disk.  A ranking that is gone is made again from the same request; its digest
says whether it is the one that the cursor was made for.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

import msgspec

from pdpp_kernel.criteria import WordQuery
from pdpp_kernel.record import RecordPlace
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.keyed_values import KeyedValues, ValueSpace
from personal_server.enforcement.search_hits import FoundPassage
from personal_server.reading.relaxing import RelaxedSearch

KEPT_PER_HOLDER = 4
KEPT_IN_ALL = 64
RECENT_IN_ALL = 32
RECENT_NS = 60 * NANOSECONDS

T = TypeVar("T")


class RankedHit(NamedTuple):
    """One place of a ranking: no text.  `question`: which of those asked it answers; `weight`: what
    the words weighed in it together then, 0 where nobody knows.
    """

    connection_id: str
    stream: str
    key: str
    passage: FoundPassage | None = None
    question: int = 0
    duplicates: int = 0
    weight: int = 0

    @property
    def place(self) -> RecordPlace:
        """What tells the record from all others."""
        return (self.connection_id, self.stream, self.key)


class Ranking(msgspec.Struct, frozen=True):
    """The hits of a search, the questions that were asked, and what was relaxed."""

    hits: tuple[RankedHit, ...]
    questions: tuple[WordQuery, ...] = ()
    relaxed: RelaxedSearch | None = None


def ranking_digest(hits: Iterable[RankedHit]) -> str:
    """What tells rankings apart: which records, in which order."""
    places = "\n".join(f"{hit.connection_id} {hit.stream} {hit.key!r}" for hit in hits)
    return hashlib.sha256(places.encode("utf-8", "surrogatepass")).hexdigest()[:32]


KeptRanking = tuple[str, Ranking]
"""A ranking and its digest."""
RANKING_BYTES = 192 * 1024
"""What a thousand hits take: 190 bytes each, of which the key is the most."""


def shared_rankings(space: ValueSpace) -> KeyedValues[KeptRanking]:
    """Rankings that every process sees, so that a further page may come to any of them."""
    return space.values("rankings", KeptRanking, KEPT_IN_ALL, RANKING_BYTES)


@dataclass(slots=True)
class Rankings:
    """The newest rankings; those used last stay longest.

    Shapes: `shared` is where other processes find them, too.
    """

    _shared: KeyedValues[KeptRanking] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _kept: OrderedDict[tuple[str, str], KeptRanking] = field(
        default_factory=OrderedDict[tuple[str, str], KeptRanking], init=False
    )

    def keep(self, holder: str, request: str, digest: str, ranking: Ranking) -> None:
        """Keep the ranking of a request in the place of an older one."""
        if self._shared is not None:
            self._shared.put((holder, request), (digest, ranking))
        with self._lock:
            self._kept[holder, request] = (digest, ranking)
            self._kept.move_to_end((holder, request))
            own = [key for key in self._kept if key[0] == holder]
            for key in own[:-KEPT_PER_HOLDER]:
                del self._kept[key]
            while len(self._kept) > KEPT_IN_ALL:
                self._kept.popitem(last=False)

    def forget(self) -> None:
        """Let go of all of them."""
        with self._lock:
            self._kept.clear()

    def find(self, holder: str, request: str, digest: str) -> Ranking | None:
        """The ranking of a request with that digest, or `None` when it is gone."""
        with self._lock:
            kept = self._kept.get((holder, request))
            if kept is not None and kept[0] == digest:
                self._kept.move_to_end((holder, request))
                return kept[1]
        kept = None if self._shared is None else self._shared.get((holder, request))
        return kept[1] if kept is not None and kept[0] == digest else None


class Kept(NamedTuple, Generic[T]):
    """What was found for a request, the number of the last change then, and when (UTC ns)."""

    found: T
    sequence: int
    at_ns: int


@dataclass(slots=True)
class RecentSearches(Generic[T]):
    """What searches found a moment ago, for the same request asked again; bounded as rankings are.

    Who asks again has to be told of what changed since: `sequence` says from where to look.
    """

    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _kept: OrderedDict[tuple[str, str], Kept[T]] = field(
        default_factory=OrderedDict[tuple[str, str], Kept[T]], init=False
    )

    def keep(self, holder: str, request: str, found: Kept[T]) -> None:
        """Keep what was found in the place of what was before."""
        with self._lock:
            self._kept[holder, request] = found
            self._kept.move_to_end((holder, request))
            own = [key for key in self._kept if key[0] == holder]
            for key in own[:-KEPT_PER_HOLDER]:
                del self._kept[key]
            while len(self._kept) > RECENT_IN_ALL:
                self._kept.popitem(last=False)

    def find(self, holder: str, request: str, now_ns: int) -> Kept[T] | None:
        """What was found for a request within a minute."""
        with self._lock:
            kept = self._kept.get((holder, request))
            is_recent = kept is not None and 0 <= now_ns - kept.at_ns <= RECENT_NS
            return kept if is_recent else None

    def forget(self) -> None:
        """Let go of all of them."""
        with self._lock:
            self._kept.clear()
