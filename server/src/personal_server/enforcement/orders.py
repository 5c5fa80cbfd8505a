"""The order of candidates, whether they are objects in a list or thousands in columns."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

from pdpp_kernel.record import RecordPlace
from personal_server.enforcement.ranking import Ranked, in_order, place_of, rank, term_weight
from personal_server.enforcement.rows import Candidate

if TYPE_CHECKING:
    from personal_server.enforcement.packed_matches import PackedCandidates, PackedRanking

Order: TypeAlias = "list[Ranked] | PackedRanking"
"""Candidates, best first; many of them in columns."""


def ordered(candidates: Sequence[Candidate], frequencies: Sequence[int]) -> Order:
    """As `rank`."""
    if isinstance(candidates, (list, tuple)):
        return rank(candidates, frequencies)
    weights = [term_weight(frequency) for frequency in frequencies]
    return cast("PackedCandidates", candidates).ranked(weights)


def answering(found: Order, question: int) -> Order:
    """The same, found for another question."""
    if isinstance(found, list):
        return [each._replace(question=question) for each in found]
    return found.answering(question)


def places_of(found: Order, wanted: Collection[RecordPlace]) -> list[int]:
    """Where in the order some records are, of those that are in it."""
    if isinstance(found, list):
        return [at for at, each in enumerate(found) if place_of(each.candidate) in wanted]
    return found.places_of(wanted)


def without(found: Order, places: Sequence[int]) -> Order:
    """The others, in their order."""
    if isinstance(found, list):
        left_out = frozenset(places)
        return [each for at, each in enumerate(found) if at not in left_out]
    return found.without(places)


def unpacked(found: Order, most: int) -> list[Ranked]:
    """All of a list; of columns the best, and behind them the first of each connection."""
    return found if isinstance(found, list) else found.unpacked(most)


def best_of(found: Order, most: int) -> Order:
    """The same, without objects for those in columns."""
    return found if isinstance(found, list) else found.best_of(most)


def merged(moved: Sequence[Ranked], rest: list[Ranked]) -> list[Ranked]:
    """Both, which are in their order, in one; there are few of the first."""
    both = list(rest)
    for each in moved:
        insort(both, each, key=in_order)
    return both
