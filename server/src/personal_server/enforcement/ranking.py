"""Ranking: the order of search hits, from candidates that hold no hidden text.

Rule: collection size and mean length are constants and document frequencies are counted among
visible records, so that nothing hidden can move a score.
Source: docs/contract/resource-server.md 11.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar

from pdpp_kernel.record import RecordPlace
from personal_server.enforcement.rows import Candidate, NearRecord

K1 = 1.2
B = 0.75
COLLECTION_SIZE = 1_000_000
MEAN_LENGTH = 128
SCORE_DECIMALS = 6


class Ranked(NamedTuple):
    """A candidate with its score; lower is better.  What was found by meaning has its passage.

    `question`: which of those asked it answers, where wider ones followed the first; `duplicates`
    others that say the same are folded into it.  There are thousands per search.
    """

    candidate: Candidate
    score: float
    near: NearRecord | None = None
    question: int = 0
    duplicates: int = 0


def place_of(candidate: Candidate) -> RecordPlace:
    """What tells a record from all others."""
    return (candidate.connection_id, candidate.stream, candidate.key)


def rank(candidates: Sequence[Candidate], frequencies: Sequence[int]) -> list[Ranked]:
    """Best first: score, newer event time, connection, stream, key."""
    scores = _Scores([term_weight(frequency) for frequency in frequencies])
    found = [
        (
            scores[each.occurrences, each.length_tokens],
            -each.event_time_ns,
            each.connection_id,
            each.stream,
            each.key,
            each,
        )
        for each in candidates
    ]
    found.sort()
    return [Ranked(sort_key[-1], sort_key[0]) for sort_key in found]


def in_order(found: Ranked) -> tuple[float, int, str, str, str]:
    """What sorts the best first."""
    return (found.score, -found.candidate.event_time_ns, *place_of(found.candidate))


class _OfConnection(Protocol):
    @property
    def connection_id(self) -> str: ...


HitT = TypeVar("HitT", bound=_OfConnection)


def first_page_first(ranked: Sequence[HitT], limit: int) -> Sequence[HitT]:
    """The ranking with the hits of a fair first page in front, each page in rank order.

    While there are as many places as matching connections, each of them gets one.
    """
    best: dict[str, int] = {}
    for position, each in enumerate(ranked):
        best.setdefault(each.connection_id, position)
    if not len(best) <= limit < len(ranked):
        return ranked
    chosen = set(best.values())
    for position in range(len(ranked)):
        if len(chosen) == limit:
            break
        chosen.add(position)
    rest = [each for position, each in enumerate(ranked) if position not in chosen]
    return [ranked[position] for position in sorted(chosen)] + rest


def term_weight(frequency: int) -> float:
    """What a term weighs that so many visible records hold."""
    return math.log(1 + (COLLECTION_SIZE - frequency + 0.5) / (frequency + 0.5))


class _Scores(dict[tuple[tuple[int, ...], int], float]):
    """By how often terms occur, and the length: most of thousands of candidates share theirs."""

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self._weights = weights

    def __missing__(self, counts: tuple[tuple[int, ...], int]) -> float:
        occurrences, length_tokens = counts
        norm = K1 * (1 - B + B * length_tokens / MEAN_LENGTH)
        total = 0.0
        for weight, count in zip(self._weights, occurrences, strict=True):
            total += weight * count * (K1 + 1) / (count + norm)
        self[counts] = score = -round(total, SCORE_DECIMALS)
        return score
