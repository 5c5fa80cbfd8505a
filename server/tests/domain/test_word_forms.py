"""The language of a text, and what its words have in common."""

from __future__ import annotations

import pytest

from personal_server.domain.language_names import LANGUAGE_CODES
from personal_server.domain.text_language import language_of
from personal_server.domain.word_forms import family_of, forms, learn_forms, stems

GERMAN = "Wir haben gestern Abend lange am Fenster gestanden und den Regen betrachtet, er fiel sehr"
FRENCH = "Nous avons longtemps attendu devant la fenêtre hier soir, et la pluie tombait toujours"
ENGLISH = "We stood at the window for a long time yesterday evening, and the rain was falling"
JAPANESE = "昨日の夜、私たちは長い間窓辺に立って雨を眺めていました。とても静かな夜でした。"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (GERMAN, "german"),
        (FRENCH, "french"),
        (ENGLISH, "english"),
        (JAPANESE, None),
        ("", "english"),
        ("Re: ok", "english"),
    ],
)
def test_a_text_says_what_language_it_is_in_and_most_are_english(
    text: str, language: str | None
) -> None:
    assert language_of(text) == language


def test_the_beginning_of_a_text_decides() -> None:
    head = (GERMAN + " ") * 3
    assert language_of(head[:200] + (JAPANESE + FRENCH) * 20) == "german"


def test_line_ends_and_what_cannot_be_printed_are_no_other_language() -> None:
    assert language_of(GERMAN.replace(" ", "\r\n")) == "german"
    assert language_of(GERMAN.replace(" ", "\0\ud800 ")) == "german"


def test_english_words_that_are_their_own_stem_have_none() -> None:
    assert stems(["walls", "wall", "walking"], "english") == ["wall", "", "walk"]


def test_words_that_are_learnt_together_have_the_forms_that_each_has_alone() -> None:
    words = ["walls", "wall", "Häuser", "maisons", "дома", "remailer"]
    alone = [forms(word) for word in words]
    forms.cache_clear()
    learn_forms(words)
    assert [forms(word) for word in words] == alone


def test_in_other_languages_each_word_has_a_stem() -> None:
    assert stems(["Häuser", "haus", "gehen"], "german") == ["Haus", "haus", "geh"]


def test_a_text_whose_language_is_not_known_has_no_stems() -> None:
    assert stems(["rain", "rains"], None) == ["", ""]


@pytest.mark.parametrize(
    ("language", "family"),
    [
        ("english", "en"),
        ("german", "gem"),
        ("swedish", "gem"),
        ("french", "roa"),
        ("turkish", "other"),
    ],
)
def test_stems_count_in_a_family_of_languages(language: str, family: str) -> None:
    assert family_of(language) == family


def test_a_word_is_found_by_itself_and_its_stems() -> None:
    found = forms("walking")
    assert found.words == ("walking", "walk")
    assert found.stems_in("english") == ("walk",)
    assert "walking" in found.stems_in("turkish")
    assert found.stems_in(None) == ()
    assert forms("wall").words == ("wall",)
    assert set(found.stems) == {"en", "gem", "roa", "other"}


def test_languages_have_their_codes() -> None:
    assert (LANGUAGE_CODES["german"], LANGUAGE_CODES["english"]) == ("de", "en")
