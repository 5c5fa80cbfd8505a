"""What a record lacks counts where its conversation holds it."""

from __future__ import annotations

import math

import pytest

from personal_server.enforcement.partial_matches import (
    AFTER_SHARE,
    BEFORE_SHARE,
    Context,
    rank_in_context,
    rank_partial,
    word_weight,
)
from personal_server.enforcement.ranking import Ranked, place_of
from personal_server.enforcement.rows import Candidate

COUNTS = [2, 500]


def candidate(key: str, *held: int, length: int = 10) -> Candidate:
    return Candidate("cin_a", "messages", key, held, length, 0)


def keys(ranked: list[Ranked]) -> list[str]:
    return [each.candidate.key for each in ranked]


def test_a_rare_word_weighs_more_than_a_common_one_twice() -> None:
    ranked = rank_partial([candidate("common", 0, 3), candidate("rare", 1, 0)], COUNTS)
    assert keys(ranked) == ["rare", "common"]
    assert word_weight(10_000) < 1 < word_weight(2)


@pytest.mark.parametrize(
    ("held", "length", "weighed"),
    [
        # with 1.2 and 0.3: of the mean length, twice as long, empty; two words, the other word
        ((1, 0), 128, math.log(1 + 10_000 / 2.5)),
        ((1, 0), 256, math.log(1 + 10_000 / 2.5) * 2.2 / 2.56),
        ((1, 0), 0, math.log(1 + 10_000 / 2.5) * 2.2 / 1.84),
        ((2, 0), 128, math.log(1 + 10_000 / 2.5) * 4.4 / 3.2),
        ((0, 1), 128, math.log(1 + 10_000 / 500.5)),
        ((1, 1), 128, math.log(1 + 10_000 / 2.5) + math.log(1 + 10_000 / 500.5)),
        ((0, 0), 128, 0.0),
    ],
)
def test_what_a_record_holds_is_weighed_by_rarity_and_length(
    held: tuple[int, int], length: int, weighed: float
) -> None:
    [found] = rank_partial([candidate("a", *held, length=length)], COUNTS)
    assert found.score == pytest.approx(-weighed, abs=1e-6)


def test_what_stands_right_before_counts_and_what_stands_behind_counts_less() -> None:
    asked = candidate("asked", 1, 0)
    found = rank_partial([candidate(key, 0, 1) for key in ("alone", "answer", "led")], COUNTS)
    contexts = {
        ("cin_a", "messages", "answer"): Context(before=asked),
        ("cin_a", "messages", "led"): Context(after=asked),
    }
    ranked = rank_in_context(found, contexts, COUNTS)
    assert keys(ranked) == ["answer", "led", "alone"]


def test_a_word_that_is_held_or_stands_on_both_sides_gains_nothing_more() -> None:
    asked, holder = candidate("asked", 1, 0), candidate("holder", 1, 0)
    [found] = rank_partial([holder], COUNTS)
    place = place_of(holder)
    [same] = rank_in_context([found], {place: Context(asked, asked)}, COUNTS)
    assert same.score == found.score
    [lacking] = rank_partial([candidate("lacks", 0, 1)], COUNTS)
    place = place_of(lacking.candidate)
    [once] = rank_in_context([lacking], {place: Context(asked)}, COUNTS)
    [twice] = rank_in_context([lacking], {place: Context(asked, asked)}, COUNTS)
    assert twice.score == once.score < lacking.score


def test_who_speaks_next_to_a_record_is_not_what_it_lacks() -> None:
    speaker = candidate("asked", 2, 0)
    [found] = rank_partial([candidate("lacks", 0, 1)], COUNTS)
    place = place_of(found.candidate)
    [same] = rank_in_context([found], {place: Context(speaker)}, COUNTS)
    assert same.score == found.score


def test_what_stands_beside_counts_a_share_of_what_it_counts_in_its_own_place() -> None:
    asked = candidate("asked", 1, 0, length=40)
    [own] = rank_partial([asked], COUNTS)
    [lacking] = rank_partial([candidate("lacks", 0, 1)], COUNTS)
    place = place_of(lacking.candidate)
    for context, share in ((Context(asked), BEFORE_SHARE), (Context(None, asked), AFTER_SHARE)):
        [found] = rank_in_context([lacking], {place: context}, COUNTS)
        assert found.score == pytest.approx(lacking.score + share * own.score, abs=1e-5)
