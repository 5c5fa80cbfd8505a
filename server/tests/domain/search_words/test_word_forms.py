import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pdpp_kernel.criteria import Term
from personal_server.domain import search_words
from personal_server.domain.search_words import (
    TextWords,
    Vocabulary,
    parse_words,
    text_words,
    tokens,
)
from personal_server.domain.text_language import language_of
from personal_server.domain.word_forms import forms, stems


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("All mail has to be encrypted before it leaves the house", "english"),
        ("Die Rechnungen für das Haus kommen im Oktober mit der Post", "german"),
        ("Bonjour, je voudrais savoir si vous venez demain", "french"),
        ("invoice", "english"),
        ("", "english"),
        ("\x00\x01\udcff"[:2] + " a line with signs that cannot be printed", "english"),
        ("Dzień dobry, proszę o przesłanie faktury za październik", None),
    ],
)
def test_the_language_of_a_text_follows_from_its_beginning(text: str, language: str | None) -> None:
    assert language_of(text) == language
    assert language_of(text.ljust(200) + " und noch ein ganz anderer Satz") == language


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("encrypt", "Nobody encrypted the letters that we were encrypting"),
        ("encrypting", "please encrypt the letter before you send it to me"),
        ("encryption", "Nobody encrypted the letters that we were sending"),
        ("Rechnung", "Die Rechnungen für das Haus kommen im Oktober mit der Post"),
        ("Rechnungen", "Die Rechnung für das Haus kommt im Oktober mit der Post"),
        ("Häuser", "Die Hauser und Häusern sind nicht das was wir wollten"),
    ],
)
def test_a_word_finds_its_other_forms(asked: str, text: str) -> None:
    words = text_words(text)
    (term,) = parse_words(asked).terms
    assert words.places(term)
    (literal,) = parse_words(f'"{asked}"').terms
    assert not words.places(literal) or tokens(asked)[0] in words.words


def test_the_very_word_weighs_more_than_its_other_forms() -> None:
    words = TextWords("encrypting is what encrypted mail has to be", "english")
    (term,) = parse_words("encrypting").terms
    assert words.places(term) == [0, 3]
    assert words.occurrences(term, "body") == 3


def test_a_phrase_stands_where_its_first_word_does() -> None:
    words = TextWords("heavy rain and rain and heavy rain", None)
    assert words.places(Term(("heavy", "rain"))) == [0, 5]
    assert words.places(Term(("rain", "heavy"))) == []


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("wallet", "Please meet me by the old wall of the town on Monday"),
        ("optician", "Their optics are the best that one can buy for money"),
        ("glasses", "Mi piacciono le mura della città e la porta detta glas"),
        ("Rechnungen", "Wystawiliśmy rechnung za październik, proszę o zapłatę"),
    ],
)
def test_a_stem_is_another_word_in_another_language(asked: str, text: str) -> None:
    words = text_words(text)
    (term,) = parse_words(asked).terms
    assert not words.places(term)


def test_the_word_itself_is_found_in_every_language() -> None:
    for text in ("Dzień dobry, proszę o przesłanie faktury", "La wallet è di Lucca, mi dicono"):
        words = text_words(text)
        for word in tokens(text):
            assert words.holds(Term((word,), inflected=True), "body"), word


def test_forms_are_words_of_the_index() -> None:
    for word in tokens("s Rechnungen οικογένεια семьями kitaplarımızdan"):
        found = forms(word)
        assert all(tokens(each) == [each] for each in found.words), word
        assert all(tokens(each) == [each] for known in found.stems.values() for each in known)


def test_the_language_of_a_query_without_common_words_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def noted(text: str) -> str:
        asked.append(text)
        return "english"

    monkeypatch.setattr(search_words, "language_of", noted)
    assert not parse_words("acme invoice october berlin").ignored
    assert asked == []
    assert parse_words("invoice of october").ignored == ("of",)
    assert asked == ["invoice of october"]


SAID = ["letter", "letters", "lettering", "mail", "mails", "to", "hauser", "haus"]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(SAID)),
    st.sampled_from(["letter", "mails", "haus", "hauser", "absent"]),
    st.sampled_from(["english", "german", None]),
)
def test_places_and_weights_are_those_of_a_look_at_each_word(
    said: list[str], asked: str, language: str | None
) -> None:
    (term,) = parse_words(asked).terms
    found = forms(asked)
    same = [word in found.words for word in said]
    alike = [stem in found.stems_in(language) for stem in stems(said, language)]
    either = [one or other for one, other in zip(same, alike, strict=True)]
    for known in (None, Vocabulary()):
        words = TextWords(" ".join(said), language, known)
        assert words.places(term) == [at for at, is_found in enumerate(either) if is_found]
        assert words.occurrences(term, "body") == sum(same) + sum(alike)
