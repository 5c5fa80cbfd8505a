"""Which hits say the same, and what near words gain."""

from __future__ import annotations

import pytest

from personal_server.domain.search_words import parse_words
from personal_server.enforcement.closeness import LookedAt, is_foldable, look_at, refined
from personal_server.enforcement.ranking import Ranked
from personal_server.enforcement.rows import Candidate
from server.tests.enforcement.mailbox import mails, notes, row

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
        ("ada b joined this group now today ok", "bob joined this group now today ok", True),
        ("ada x joined the group", "bob y joined the group", False),
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


def gaps(text: str, asked: str = "heat pump") -> tuple[int, ...]:
    return look_at(mails(), row(body=text), parse_words(asked)).gaps


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("a heat pump", 1),
        ("the heat of a pump", 3),
        ("a pump heat", 2),
        ("pump and heat", 3),
        ("heat" + " and" * 7 + " pump", 8),
        ("heat" + " and" * 8 + " pump", 0),
        ("heat", 0),
        ("heat and so on and so on and so on, a pump of heat pump", 1),
    ],
)
def test_a_gap_is_how_far_two_neighbours_of_the_query_stand_apart(text: str, gap: int) -> None:
    assert gaps(text) == (gap,)


def test_the_nearest_field_counts_and_fields_do_not_join() -> None:
    both = row(subject="heat and a pump", body="a heat pump")
    assert look_at(mails(), both, parse_words("heat pump")).gaps == (1,)
    apart = row(subject="heat", body="pump")
    assert look_at(mails(), apart, parse_words("heat pump")).gaps == (0,)


@pytest.mark.parametrize("weight", [0, 3, 9])  # none known, that, more
def test_other_forms_of_words_are_near_whatever_is_known_of_their_weight(weight: int) -> None:
    text = row(body="They heated the pumps, and the heat is gone.")
    asked = parse_words("heat pump")
    assert look_at(mails(), text, asked, weight) == look_at(mails(), text, asked)


def test_a_phrase_is_as_long_as_its_words() -> None:
    assert gaps("the heat pump valve", '"heat pump" valve') == (1,)


def test_each_pair_of_neighbours_has_its_gap_and_one_word_has_none() -> None:
    assert gaps("a heat pump and its valve", "heat pump valve") == (1, 3)
    assert gaps("a heat pump", "heat") == ()


def test_what_somebody_said_can_be_folded_without_the_names_of_who() -> None:
    seen = look_at(
        mails(), row(subject="Rain", body="Heavy rain", sender="ada"), parse_words("rain")
    )
    assert seen.said == ("rain", "heavy", "rain")
    assert look_at(notes(), row(said="rain"), parse_words("rain")).said == ()
    assert (is_foldable(mails()), is_foldable(notes())) == (True, False)


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert gaps("w " * 10_000 + "heat pump") == (0,)
    assert gaps("w " * 9_995 + "heat pump") == (1,)
    assert gaps("w " * 9_995 + " heat pump") == (1,)  # of 20,000 characters, and of one more
    assert gaps("w " * 9_995 + "  heat pump") == (0,)
    # 64 places of a word, and one more
    assert gaps("heat pump " + "heat and so on and so on and so on " * 70) == (1,)
    assert gaps(" and so on and so on and so on ".join(["heat"] * 63) + " heat pump") == (1,)
    assert gaps(" and so on and so on and so on ".join(["heat"] * 64) + " heat pump") == (2,)


def words(count: int, *others: str) -> str:
    return " ".join([*("w" + "abcdefghijklmnopqrstuvwxyz"[n] for n in range(count)), *others])


def letters(same: int, *others: int) -> str:
    """So many words, and others, each lot of its own."""
    lots = zip("abc", (same, *others), strict=False)
    return " ".join(
        f"{lot}{chr(97 + n // 26)}{chr(97 + n % 26)}" for lot, of in lots for n in range(of)
    )


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (words(20), words(20, "more"), True),
        (words(19), words(19, "more"), False),
        (words(20), words(20, "xa", "xb", "xc"), True),
        (words(20), words(20, "xa", "xb", "xc", "xd"), False),
        (words(20, "7"), words(20, "7", "8"), True),
        (words(22, "7"), words(22, "8"), False),
        ("ada is at home", "bob is at home", True),
        ("ada is home", "bob is home", False),
        ("ada marie is at home", "bob is at home", False),
        ("4 is at home", "5 is at home", False),
        ("wa " + words(18), "ada " + words(18), True),
        ("wa " + words(19), "ada " + words(19), False),
        (words(20), words(20).replace("w", "v"), False),
        # 85 of a hundred are most, and three quarters of an end
        (words(20, *(f"x{n}" for n in range(3))), words(20), True),
        (letters(85, 15), letters(85), True),
        (letters(84, 16), letters(84), False),
        (letters(85, 7, 0), letters(85, 0, 8), True),
        (letters(85, 8, 0), letters(85, 0, 8), False),
        ("ada joined", "ada joined the group", False),
        ("a b c d", "b c d", True),
        ("b c d", "a b c d", True),
        ("ada left room 4", "bob left room 4", True),
        ("ada 4 joined the group", "ada 5 joined the group", False),
        ("ada " * 9 + "x y " * 13, "bob " + "x y " * 13, False),
        ("ada " * 8 + "x y " * 12, "bob " + "x y " * 12, True),
    ],
)
def test_long_hits_share_most_words_and_short_ones_their_end(
    one: str, other: str, is_same: bool
) -> None:
    assert len(ranking(one, other)) == (1 if is_same else 2)
