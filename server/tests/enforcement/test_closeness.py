"""Which hits say the same, and what near words gain."""

from __future__ import annotations

import pytest

from personal_server.enforcement.closeness import LookedAt, refined
from personal_server.enforcement.ranking import Ranked
from personal_server.enforcement.rows import Candidate

LETTER = (
    "we looked at the heat pump in the cellar today and it needs a new valve before winter comes"
    " so please call the plumber about an offer"
)


def ranking(*said: str, gaps: tuple[tuple[int, ...], ...] = ()) -> list[Ranked]:
    """Hits of equal score, newest first, by what they say."""
    found = [
        Ranked(Candidate("cin_a", "notes", f"n{n}", (1, 1), 10, -n), -9.0) for n in range(len(said))
    ]
    every = gaps or ((),) * len(said)
    looked_at = [LookedAt(gap, tuple(text.split())) for text, gap in zip(said, every, strict=True)]
    seen = {("cin_a", "notes", f"n{n}"): each for n, each in enumerate(looked_at)}
    return refined(found, seen, (10, 1_000))


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("thanks a lot", "thanks a lot", True),
        ("ada joined the group", "bob joined the group", True),
        ("ada has joined python", "carol smith has left python", False),
        ("table 4 is free now", "table 5 is free now", False),
        ("are you coming home tonight", "are you coming home tomorrow", False),
        (LETTER, f"yes i will {LETTER}", True),
        (LETTER + " on 7", LETTER + " on 8", False),
        (LETTER, " ".join(reversed(LETTER.split()[:14])) + " and quite another matter", False),
    ],
)
def test_what_says_the_same_is_counted_in_the_better_hit(
    one: str, other: str, is_same: bool
) -> None:
    found = [(each.candidate.key, each.duplicates) for each in ranking(one, other)]
    assert found == ([("n0", 1)] if is_same else [("n0", 0), ("n1", 0)])


def test_what_cannot_be_folded_is_not() -> None:
    assert [each.duplicates for each in ranking("", "")] == [0, 0]


def test_words_side_by_side_rank_before_words_that_are_near_and_those_that_are_not() -> None:
    found = ranking("far", "near", "beside", gaps=((0,), (4,), (1,)))
    assert [each.candidate.key for each in found] == ["n2", "n1", "n0"]
    assert found[-1].score == -9.0
