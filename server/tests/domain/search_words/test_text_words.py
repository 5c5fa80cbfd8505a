"""Where terms stand in a text, and how much each weighs there."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from pdpp_kernel.criteria import Term
from personal_server.domain.search_words import TextWords, Vocabulary, parse_words, text_words

TEXT = "The rain came. Raining, it rained on the rainy heavy rain; heavy rain again"


def term(text: str) -> Term:
    (found,) = parse_words(text).terms
    return found


@pytest.mark.parametrize(
    ("sought", "places"),
    [
        ("came", [2]),
        ("heavy", [9, 11]),
        ('"rain"', [1, 10, 12]),
        ('"heavy rain"', [9, 11]),
        ('"heavy rain heavy"', [9]),
        ('"rain heavy"', [10]),
        ("rai*", [1, 3, 5, 8, 10, 12]),
        ("heavy-ra*", [9, 11]),
        ("rain", [1, 3, 5, 10, 12]),
        ("snow", []),
        ('"again heavy"', []),
    ],
)
def test_a_term_stands_where_its_words_begin(sought: str, places: list[int]) -> None:
    words = text_words(TEXT)
    assert words.places(term(sought)) == places
    assert words.holds(term(sought), "body") is bool(places)


def test_a_text_knows_its_words_their_number_and_its_length() -> None:
    words = TextWords("rain  snow rain", None)
    assert (words.words, words.length, words.chars) == (["rain", "snow", "rain"], 3, 15)
    assert words.counts == {"rain": 2, "snow": 1}
    assert TextWords("", None).length == 0


@pytest.mark.parametrize(
    ("sought", "weight"),
    [
        ('"heavy rain"', 2),
        ('"rain rain"', 0),
        ('"heavy"', 2),
        ('"hea"', 0),
        ("hea*", 2),
        ("heavy-ra*", 2),
        ("came", 1),
        ("rain", 5),
        ("raining", 6),
        ("snow", 0),
    ],
)
def test_a_term_weighs_its_places_and_those_twice_where_word_and_stem_match(
    sought: str, weight: int
) -> None:
    for vocabulary in (None, Vocabulary()):
        assert text_words(TEXT, vocabulary).occurrences(term(sought), "body") == weight


@pytest.mark.parametrize(
    ("sought", "weight", "places"),
    [("Garten", 4, [4, 12]), ("Gärten", 4, [4, 12]), ("Haus", 3, [1, 6]), ("steht", 2, [7])],
)
def test_in_another_language_every_word_has_a_stem(
    sought: str, weight: int, places: list[int]
) -> None:
    text = (
        "Die Häuser stehen im Garten, das Haus steht am Hausgarten und die Gärten blühen im Regen"
    )
    for vocabulary in (None, Vocabulary()):
        words = text_words(text, vocabulary)
        assert (words.occurrences(term(sought), "body"), words.places(term(sought))) == (
            weight,
            places,
        )


def test_a_term_weighs_in_its_fields_with_the_others_in_its_place() -> None:
    words = text_words(TEXT)
    heavy, came = term('"heavy"'), term('"came"')
    assert words.occurrences(dataclasses.replace(heavy, others=(came,)), "body") == 3
    titled = dataclasses.replace(heavy, fields=("title",))
    assert (words.occurrences(titled, "title"), words.occurrences(titled, "body")) == (2, 0)
    assert words.occurrences(replace(titled, others=(came,)), "body") == 1


def test_texts_that_share_a_vocabulary_weigh_a_term_alike() -> None:
    known = Vocabulary()
    for _ in range(3):
        assert text_words(TEXT, known).occurrences(term("raining"), "body") == 6
    known.learn(frozenset({"rains", "rained"}), "english")
    assert sorted(known.with_stem("rain", "english")).count("rained") == 1
    assert known.with_stem("rain", "german") == ()


def test_a_term_that_asks_for_no_word_stands_nowhere() -> None:
    words = text_words(TEXT)
    assert (words.places(Term(())), words.occurrences(Term(()), "body")) == ([], 0)


@pytest.mark.parametrize("written", ["C++", "C#", ".net"])
def test_what_has_signs_is_meant_literally(written: str) -> None:
    found = term(written)
    assert (found.literal, found.quoted, found.inflected) == (written, True, False)
    assert found.said == written
