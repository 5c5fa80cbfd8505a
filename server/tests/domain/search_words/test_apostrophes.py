"""A possessive asks for whom it names, and an elided article for its noun."""

from __future__ import annotations

import pytest

from personal_server.domain.search_words import parse_words, says_little


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Gina's", ("gina",)),
        ("Gina\u2019s?", ("gina",)),
        ("James'", ("james",)),
        ("mother-in-law's", ("mother", "in", "law")),
        ("l'eau", ("eau",)),
        ("dell\u2019anno", ("anno",)),
        ("all'aperto", ("aperto",)),
        ("jusqu'ici", ("ici",)),
        ("O'Brien", ("o", "brien")),
        ("rock'n'roll", ("rock", "n", "roll")),
        ('"Gina\'s ring"', ("gina", "s", "ring")),
    ],
)
def test_what_an_apostrophe_parts_from_a_word_is_not_looked_for(
    written: str, meant: tuple[str, ...]
) -> None:
    [term] = parse_words(written).terms
    assert term.tokens == meant
    assert term.said == written
    assert term.inflected == (len(meant) == 1)


def test_all_that_was_written_stays_the_phrase_of_a_query() -> None:
    phrase = parse_words("Gina's ring").phrase
    assert phrase is not None
    assert phrase.tokens == ("gina", "s", "ring")


def test_words_that_questions_begin_with_are_not_looked_for() -> None:
    assert parse_words("whose ring").ignored == ("whose",)


def test_common_words_of_other_languages_say_little() -> None:
    found = {term.said: says_little(term) for term in parse_words("wann kommt der Klempner").terms}
    assert not found["Klempner"]
    assert found.get("wann", True)
    assert found.get("der", True)
    assert not any(says_little(term) for term in parse_words('"der" wann*').terms)


@pytest.mark.parametrize("contraction", ["haven't", "I\u2019m", "didn't", "they'll", "WON'T"])
def test_contractions_say_nothing_and_their_parts_do(contraction: str) -> None:
    words = parse_words(f"which books by Tolkien {contraction} read")
    assert contraction in words.ignored
    assert [term.said for term in words.terms] == ["books", "Tolkien", "read"]
    assert parse_words("who won the haven of the storm").ignored == ("who", "the", "of")
    assert [term.said for term in parse_words(f'who wrote "{contraction}"').terms] == [
        "wrote",
        f'"{contraction}"',
    ]
