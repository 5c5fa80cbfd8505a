"""Partial matches: the order of records that hold some of the words of a search.

Rule: what a record lacks may stand in what was said right before or after it, in the same
conversation: an answer seldom repeats its question.  All is counted among visible records.
Source: docs/contract/resource-server.md 11.7.

By an example: "which instrument did Ada play" finds

    Bob: Which instrument did you learn as a child?     holds `instrument`
    Ada: The cello, for eight years.                    holds `Ada`, and lacks what stands before it

The second line gains most of the weight of `instrument`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pdpp_kernel.record import RecordPlace
from personal_server.enforcement.ranking import (
    K1,
    MEAN_LENGTH,
    SCORE_DECIMALS,
    Ranked,
    in_order,
    place_of,
)
from personal_server.enforcement.rows import Candidate

# A word that so many records hold weighs next to nothing; rarer ones weigh far more than in a
# search for all words, where every hit holds every word.
COMMON_HOLDERS = 10_000
# How much a long text is set back: less than there, since it may hold more of the words.
LENGTH_SHARE = 0.3
# What a word counts that stands in the record before or after only.
BEFORE_SHARE, AFTER_SHARE = 0.6, 0.4


class Context(NamedTuple):
    """The neighbours of a record that hold some of the words, `None` without."""

    before: Candidate | None = None
    after: Candidate | None = None


def word_weight(frequency: int) -> float:
    """What a word weighs that so many visible records hold."""
    return math.log(1 + COMMON_HOLDERS / (frequency + 0.5))


def rank_partial(candidates: Sequence[Candidate], frequencies: Sequence[int]) -> list[Ranked]:
    """Best first, without their conversations: score, newer event time, place."""
    weights = [word_weight(frequency) for frequency in frequencies]
    ranked = [
        Ranked(each, -round(_own_score(each, weights), SCORE_DECIMALS)) for each in candidates
    ]
    return sorted(ranked, key=in_order)


def rank_in_context(
    ranked: Sequence[Ranked], contexts: Mapping[RecordPlace, Context], frequencies: Sequence[int]
) -> list[Ranked]:
    """The same with what stands beside them."""
    weights = [word_weight(frequency) for frequency in frequencies]
    moved: list[Ranked] = []
    for each in ranked:
        context = contexts.get(place_of(each.candidate))
        if context is not None:
            gained = _gained(each.candidate, context, weights)
            each = each._replace(score=round(each.score - gained, SCORE_DECIMALS))
        moved.append(each)
    return sorted(moved, key=in_order)


def _own_score(candidate: Candidate, weights: Sequence[float]) -> float:
    norm = _norm(candidate.length_tokens)
    counted = zip(weights, candidate.occurrences, strict=True)
    return sum(weight * count * (K1 + 1) / (count + norm) for weight, count in counted)


def _gained(candidate: Candidate, context: Context, weights: Sequence[float]) -> float:
    """Each word that is lacking counts once, where it stands first."""
    lacking = {index for index, count in enumerate(candidate.occurrences) if not count}
    gained = 0.0
    for share, beside in ((BEFORE_SHARE, context.before), (AFTER_SHARE, context.after)):
        if beside is not None:
            worth = share * (K1 + 1) / (1 + _norm(beside.length_tokens))
            # where not all words are needed an odd number says that one stands in what it says,
            # and not just in who says it
            found = {index for index in lacking if beside.occurrences[index] & 1}
            gained += sum(weights[index] * worth for index in sorted(found))
            lacking -= found
    return gained


def _norm(length_tokens: int) -> float:
    return K1 * (1 - LENGTH_SHARE + LENGTH_SHARE * length_tokens / MEAN_LENGTH)
