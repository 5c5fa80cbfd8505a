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


@pytest.mark.parametrize(("first", "last"), ["az", "αω", "аџ", "աֆ", "את", "ءي", "აჰ"])
def test_an_alphabet_goes_from_its_first_letter_to_its_last(first: str, last: str) -> None:
    near = near_spellings(first * 5)
    assert last + first * 4 in near
    assert first + last * 4 in near_spellings(last * 5)


@pytest.mark.parametrize("letter", ["ѡ", "ჱ", "ა" + "a", "1", "日"])
def test_other_letters_and_two_alphabets_in_one_word_have_no_near_ones(letter: str) -> None:
    assert near_spellings((letter * 5)[:6]) == ()


@pytest.mark.parametrize(("own", "plain"), ["øo", "łl", "đd", "ðd", "þt", "ıi", "æa", "œo"])
def test_each_letter_that_a_keyboard_lacks_has_one_that_is_typed_for_it(
    own: str, plain: str
) -> None:
    assert f"rem{own}k" in near_spellings(f"rem{plain}k")
    assert f"rem{plain}k" in near_spellings(f"rem{own}k")
    assert f"br{own}t" in near_spellings(f"br{plain}t")


def test_at_most_three_are_suggested_in_the_order_of_letters_where_nothing_else_decides() -> None:
    near = ("winder", "winner", "winker", "winger")
    found = likeliest("winter", dict.fromkeys(near, 2))
    assert found.words == ("winder", "winger", "winker")
    assert (found.is_clear, found.is_slip) == (False, False)
    nothing = likeliest("winter", {})
    assert (nothing.words, nothing.is_clear, nothing.is_slip) == ((), False, False)


@pytest.mark.parametrize(
    ("near", "others", "is_clear"),
    [
        # a swap 4, a letter doubled 3, one left out 2, another 1; each times 1 + log2 of how often
        ("wintre", {"wintter": 1}, False),
        ("wintre", {"wintaer": 1}, True),
        ("wintter", {"wintaer": 1}, True),
        ("wintter", {"wintaer": 2}, False),
        ("wintaer", {"winder": 1}, True),
        ("winder", {"linter": 1}, True),
        ("winder", {"linter": 2}, True),
        ("winder", {"linter": 4}, False),
    ],
)
def test_the_best_is_clear_by_its_mistake_and_how_often_it_occurs(
    near: str, others: dict[str, int], *, is_clear: bool
) -> None:
    found = likeliest("winter", {near: 1, **others})
    assert near in found.words
    assert (found.words[0] == near and found.is_clear) is is_clear


@pytest.mark.parametrize(
    ("counts", "is_clear"),
    [
        ({"wintre": 3, "wintter": 2}, True),  # 10.3 and 6
        ({"wintre": 2, "wintter": 2}, False),  # 8 and 6
        ({"wintre": 1, "wintaer": 2}, False),  # 4 and 4
        ({"wintter": 2, "wintre": 1}, True),  # 6 and 4
        ({"wintaer": 2, "wintter": 1}, False),  # 4 and 3
    ],
)
def test_how_often_it_occurs_counts_by_its_logarithm(
    counts: dict[str, int], *, is_clear: bool
) -> None:
    found = likeliest("winter", counts)
    assert found.words == (*counts,) or not is_clear
    assert found.is_clear is is_clear


@pytest.mark.parametrize(
    ("near", "is_slip"),
    [
        ("wintre", True),
        ("wintter", True),
        ("wintaer", True),
        ("winer", False),
        ("winder", False),
        ("winters", True),
    ],
)
def test_a_swap_a_doubled_and_a_lost_letter_are_slips(near: str, *, is_slip: bool) -> None:
    assert likeliest("winter", {near: 1}).is_slip is is_slip


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
    assert not {"winder", "winters", "wintar", "wanter"} & found
