from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.criteria import NamedPiece, Term
from personal_server.domain.search_words import parse_words, text_without, value_term


def word(token: str) -> Term:
    return Term((token,), inflected=True)


def either(first: Term, *others: Term) -> Term:
    return replace(first, others=others)


def named(term: Term, name: str, value: str, *, quoted: bool = False) -> Term:
    return replace(term, named=NamedPiece(name, value, quoted))


PREFIX = Term(("wi",), prefix=True)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("rain", [word("rain")]),
        ('"rain"', [Term(("rain",))]),
        ("  heavy   rain ", [word("heavy"), word("rain")]),
        ('"heavy rain" wind', [Term(("heavy", "rain")), word("wind")]),
        ('"heavy rain', [Term(("heavy", "rain"))]),
        ("ada@example.org", [Term(("ada", "example", "org"))]),
        ("ra*", [Term(("ra",), prefix=True)]),
        ("r*", [word("r")]),
        ("foo-ba*", [Term(("foo", "ba"), prefix=True)]),
        ('"ra*"', [Term(("ra",))]),
        ("Caf\u00c9", [word("cafe")]),
        ("rain OR wind snow", [either(word("rain"), word("wind")), word("snow")]),
        ('rain OR "heavy snow" OR wi*', [either(word("rain"), Term(("heavy", "snow")), PREFIX)]),
        ("rain or wind", [word("rain"), word("wind")]),
        ("OR OR", [word("or")]),
        ("OR rain OR", [word("rain")]),
        ("rain OR -wind", [word("rain")]),
        ("rain e-mail 2019-03", [word("rain"), Term(("e", "mail")), Term(("2019", "03"))]),
        ("-rain", [word("rain")]),
        ("日本", [Term(("日", "本"))]),
        ('foo"bar baz"', [word("foo"), Term(("bar", "baz"))]),
        ("& - *", []),
        ('""', []),
    ],
)
def test_search_text_becomes_terms(text: str, terms: list[Term]) -> None:
    assert list(parse_words(text).terms) == terms


@pytest.mark.parametrize(
    ("text", "excluded"),
    [
        ("rain -wind", [word("wind")]),
        ("-wind rain", [word("wind")]),
        ('rain -"heavy snow" -wi*', [Term(("heavy", "snow")), PREFIX]),
        ("rain - wind", []),
        ("rain --wind", []),
        ("rain-wind", []),
        ('rain "a -wind"', []),
        ("-rain -wind", []),
        (
            'rain -from:"red coat"',
            [named(Term(("from", "red", "coat"), quoted=True), "from", "red coat", quoted=True)],
        ),
        ('rain from:"red coat"', []),
        ('rain a-"wind"', []),
        ('rain "snow"-"wind"', []),
        ('rain "snow"-from:"wind"', []),
        ('rain - "wind"', []),
        ('rain\n-"wind"', [Term(("wind",))]),
        ("rain -", []),
        ("rain --", []),
        ("rain -\u00e9t\u00e9", [word("ete")]),
        ("rain -*", []),
        ("rain -from:ada", [named(Term(("from", "ada")), "from", "ada")]),
    ],
)
def test_a_minus_before_a_word_leaves_it_out(text: str, excluded: list[Term]) -> None:
    assert list(parse_words(text).excluded) == excluded


def test_where_all_is_left_out_the_words_are_looked_for_and_the_sign_is_ignored() -> None:
    words = parse_words('-perl -"two words"')
    assert [term.tokens for term in words.terms] == [("perl",), ("two", "words")]
    assert (words.excluded, words.ignored) == ((), ("-",))
    assert parse_words("razor -perl").ignored == ()


@given(st.text(max_size=60))
def test_no_text_is_a_syntax_error(text: str) -> None:
    assert all(term.tokens for term in parse_words(text).terms)


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("from:Ada", named(Term(("from", "ada")), "from", "Ada")),
        ("sent_at:2026-03", named(Term(("sent", "at", "2026", "03")), "sent_at", "2026-03")),
        ("body:rai*", named(Term(("body", "rai"), prefix=True), "body", "rai*")),
        ('from:"Ada L."', named(Term(("from", "ada", "l")), "from", "Ada L.", quoted=True)),
        ("Re:", word("re")),
        ("12:30", Term(("12", "30"))),
    ],
)
def test_a_name_and_a_colon_stay_words_until_a_source_knows_the_name(text: str, term: Term) -> None:
    assert parse_words(text).terms == (term,)
    assert parse_words(f"rain -{text}").excluded in ((term,), ())


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("rain OR OR wind", [word("rain"), word("wind")]),
        ("rain OR wind OR snow", [either(word("rain"), word("wind"), word("snow"))]),
        (
            "rain OR wind snow OR hail",
            [either(word("rain"), word("wind")), either(word("snow"), word("hail"))],
        ),
        ("-rain OR wind", [word("wind")]),
        ("rain OR rain", [word("rain")]),
        ("rain wind rain", [word("rain"), word("wind")]),
        ('rain "OR" wind', [word("rain"), Term(("or",)), word("wind")]),
    ],
)
def test_or_joins_two_words_that_it_stands_between(text: str, terms: list[Term]) -> None:
    assert list(parse_words(text).terms) == terms


@pytest.mark.parametrize(
    ("piece", "term", "is_quoted"),
    [
        (NamedPiece("from", "Ada"), word("ada"), True),
        (NamedPiece("from", "Ada L."), Term(("ada", "l")), True),
        (NamedPiece("from", "ad*"), Term(("ad",), prefix=True), True),
        (NamedPiece("from", "Ada L.", quoted=True), Term(("ada", "l")), True),
        (NamedPiece("from", "a:b"), Term(("a", "b")), True),
    ],
)
def test_what_a_name_asks_for_is_meant_as_much_as_a_quoted_word(
    piece: NamedPiece, term: Term, *, is_quoted: bool
) -> None:
    found = value_term(piece)
    assert (found, found.quoted, found.named) == (term, is_quoted, None)


def test_a_text_loses_the_words_that_are_left_out() -> None:
    left_out = frozenset({word("rain"), Term(("wi",), prefix=True)})
    assert text_without("heavy Rain, wi* and wind (rain)", left_out) == "heavy and wind"
    assert text_without(" a  b ", frozenset()) == "a b"


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("C++", "C++"),
        ("c+", "c+"),
        ("C#.", "C#"),
        ("(.NET)", ".NET"),
        (".x", ""),
        ("a.b", ""),
        ("C+++", ""),
        ("#c", ""),
        ("5+", "5+"),
    ],
)
def test_signs_that_are_part_of_a_name_are_meant_too(written: str, literal: str) -> None:
    (term,) = parse_words(written).terms
    assert term.literal == literal
    assert term.quoted is bool(literal)


@pytest.mark.parametrize(
    ("text", "sought", "ignored"),
    [
        ("what did Ada say about the heat pump", ["ada", "say", "heat", "pump"], 4),
        ("Was hat Ada über die Wärmepumpe gesagt", ["ada", "warmepumpe", "gesagt"], 4),
        ("what's the plan", ["plan"], 2),
        ("to be or not to be", ["to", "be", "or", "not"], 0),
        ('"the who" the live', ["the who", "live"], 1),
        ("the OR rain", ["the"], 0),
        ("the* rain", ["the", "rain"], 0),
    ],
)
def test_words_that_every_text_holds_are_left_out_of_a_query_that_has_others(
    text: str, sought: list[str], ignored: int
) -> None:
    words = parse_words(text)
    assert [" ".join(term.tokens) for term in words.terms] == sought
    assert len(words.ignored) == ignored


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("heavy rain", ("heavy", "rain")),
        ("the rain today", ("the", "rain", "today")),
        ("heavy-rain wind", ("heavy", "rain", "wind")),
        ("rain", None),
        ('"heavy rain" wind', None),
        ("heavy rai*", None),
        ("heavy -rain", None),
        ("heavy OR rain", None),
        ("from:ada rain", None),
        ("C++ rain", None),
        ("", None),
    ],
)
def test_plain_words_are_a_phrase_too(text: str, phrase: tuple[str, ...] | None) -> None:
    found = parse_words(text).phrase
    assert (None if found is None else found.tokens) == phrase


def test_emoji_are_no_words_and_said_to_be_left_out() -> None:
    words = parse_words("party \U0001f389 \U0001f602\U0001f602 at - 5 \u2013 \U0001f389")
    assert [term.said for term in words.terms] == ["party", "5"]
    assert words.ignored == ("at", "\U0001f389", "\U0001f602\U0001f602")


@pytest.mark.parametrize(
    ("text", "is_quoted"),
    [
        ('"rain"', True),
        ('"heavy rain"', True),
        ('from:"Ada"', True),
        ('"rain" OR snow', True),
        ("C#", True),
        ("rain", False),
        ("rai*", False),
        ("from:ada", False),
        ("rain OR snow", False),
    ],
)
def test_what_stands_in_quotation_marks_is_meant_as_it_is(text: str, *, is_quoted: bool) -> None:
    (term,) = parse_words(text).terms
    assert term.quoted is is_quoted
