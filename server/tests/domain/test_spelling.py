"""Words that a mistyped one may have been meant to be."""

from __future__ import annotations

import pytest

from personal_server.domain.spelling import likeliest, near_spellings, slips


@pytest.mark.parametrize(
    "near",
    [
        "winter",  # a letter lost
        "winters",  # added
        "winder",  # changed
        "wniter",  # swapped
        "iwnter",
        "wintre",
    ],
)
def test_one_mistake_is_near(near: str) -> None:
    word = "winte" if near == "winter" else "winter"
    assert near in near_spellings(word)


@pytest.mark.parametrize("far", ["winter", "wimder", "twinters", "wretni", "winтer"])
def test_the_word_itself_two_mistakes_and_other_alphabets_are_not(far: str) -> None:
    assert far not in near_spellings("winter")


def test_each_alphabet_has_its_own_letters() -> None:
    assert "зимам" in near_spellings("зимах")
    assert "zimam" not in near_spellings("зимах")


def test_a_letter_that_a_keyboard_lacks_is_near_the_one_typed_for_it() -> None:
    assert "brød" in near_spellings("brod")
    assert "brød" not in near_spellings("brid")


@pytest.mark.parametrize(
    ("word", "is_looked_at"), [("abc", False), ("abcd", True), ("a" * 24, True), ("a" * 25, False)]
)
def test_words_of_4_to_24_letters_have_near_ones(word: str, is_looked_at: bool) -> None:
    assert bool(near_spellings(word)) == is_looked_at


def test_near_words_come_once_and_in_order() -> None:
    found = near_spellings("abbac")
    assert list(found) == sorted(set(found))
    assert {"abac", "abba", "bbac", "aabbac", "abbbac", "babac", "ababc"} <= set(found)


def test_another_letter_makes_another_word_of_a_short_one() -> None:
    found = set(near_spellings("zara"))
    assert {"sara", "zaba", "zar", "zarah"}.isdisjoint(found)
    assert {"azra", "zaraa", "zarra"} <= found
    assert "aba" in near_spellings("abba")


def test_a_slip_whose_stem_is_another_word_is_none() -> None:
    assert "einhet" in near_spellings("einheit")
    assert "einhet" not in slips("einheit")
    assert "remailer" in slips("remialer")


def test_what_occurs_more_often_is_likelier_among_equal_mistakes() -> None:
    found = likeliest("winter", {"winder": 8, "winner": 2, "wister": 0})
    assert found.words == ("winder", "winner")
    assert found.is_clear


def test_a_swap_is_likelier_than_a_doubled_letter_than_a_lost_one_than_another() -> None:
    near = ("wintre", "wintter", "wintaer", "winder")
    assert likeliest("winter", dict.fromkeys(near, 4)).words == near[:3]


def test_a_letter_left_out_is_likelier_than_one_too_many() -> None:
    found = likeliest("gardning", {"gardening": 2, "garding": 3})
    assert found.words == ("gardening", "garding")
    assert (found.is_clear, found.is_slip) == (True, True)
    assert not likeliest("gardning", {"garding": 3}).is_slip


def test_another_first_letter_is_unlikely() -> None:
    assert likeliest("winter", {"winder": 1, "linter": 4}).words == ("winder", "linter")


@pytest.mark.parametrize(
    ("counts", "is_clear"),
    [
        ({"winder": 4, "winner": 2}, True),  # 3 : 2
        ({"winder": 3, "winner": 2}, False),
        ({"winder": 1}, True),
    ],
)
def test_the_best_is_taken_where_it_is_half_again_as_likely(
    counts: dict[str, int], is_clear: bool
) -> None:
    assert likeliest("winter", counts).is_clear == is_clear


@pytest.mark.parametrize(
    ("word", "near", "is_clear"), [("rain", "ruin", False), ("rains", "ruins", True)]
)
def test_a_short_word_is_never_taken_for_another(word: str, near: str, is_clear: bool) -> None:
    found = likeliest(word, {near: 1})
    assert (found.words, found.is_clear) == ((near,), is_clear)


def test_where_nothing_near_occurs_nothing_is_suggested() -> None:
    found = likeliest("winter", {"winder": 0})
    assert (found.words, found.is_clear) == ((), False)


def test_a_slip_brings_no_other_consonant() -> None:
    found = set(slips("winter"))
    assert {"wintre", "wwinter", "winteer", "winterr", "wnter", "winte", "inter"} <= found
    assert "awinter" in found  # a vowel left out
    assert not {"winder", "winters"} & found
