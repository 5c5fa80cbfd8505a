"""Ranking: the order of search hits, from candidates that hold no hidden text.

Rule: collection size and mean length are constants and document frequencies are counted among
visible records, so that nothing hidden can move a score.
Source: RS contract 11.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from personal_server.planning.plans import Candidate

K1 = 1.2
B = 0.75
COLLECTION_SIZE = 1_000_000
MEAN_LENGTH = 128
SCORE_DECIMALS = 6


class Ranked(NamedTuple):
    """A candidate with its score; lower is better.  There are thousands per search."""

    candidate: Candidate
    score: float


def rank(candidates: Sequence[Candidate], frequencies: Sequence[int]) -> list[Ranked]:
    """Best first: score, newer event time, connection, stream, key."""
    weights = [_weight(frequency) for frequency in frequencies]
    placed = [
        (
            _score(each, weights),
            -each.event_time_ns,
            each.connection_id,
            each.stream,
            each.key,
            each,
        )
        for each in candidates
    ]
    placed.sort()
    return [Ranked(place[-1], place[0]) for place in placed]


def first_page_first(ranked: Sequence[Ranked], limit: int) -> list[Ranked]:
    """The ranking with the hits of a fair first page in front, each page in rank order.

    While there are as many places as matching connections, each of them gets one.
    """
    best: dict[str, int] = {}
    for place, each in enumerate(ranked):
        best.setdefault(each.candidate.connection_id, place)
    if not len(best) <= limit < len(ranked):
        return list(ranked)
    chosen = set(best.values())
    for place in range(len(ranked)):
        if len(chosen) == limit:
            break
        chosen.add(place)
    rest = [each for place, each in enumerate(ranked) if place not in chosen]
    return [ranked[place] for place in sorted(chosen)] + rest


def _weight(frequency: int) -> float:
    return math.log(1 + (COLLECTION_SIZE - frequency + 0.5) / (frequency + 0.5))


def _score(candidate: Candidate, weights: Sequence[float]) -> float:
    norm = K1 * (1 - B + B * candidate.length_tokens / MEAN_LENGTH)
    if len(weights) == 1:
        count = candidate.occurrences[0]
        return -round(weights[0] * count * (K1 + 1) / (count + norm), SCORE_DECIMALS)
    total = 0.0
    for weight, count in zip(weights, candidate.occurrences, strict=True):
        total += weight * count * (K1 + 1) / (count + norm)
    return -round(total, SCORE_DECIMALS)
