from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.domain.criteria import Term
from personal_server.domain.search_words import parse_words


def word(token: str) -> Term:
    return Term((token,), inflected=True)


def either(first: Term, *others: Term) -> Term:
    return replace(first, others=others)


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
        ("rain or wind", [word("rain"), word("or"), word("wind")]),
        ("OR rain OR", [word("or"), word("rain")]),
        ("rain OR -wind", [word("rain"), word("or")]),
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
    ],
)
def test_a_minus_before_a_word_leaves_it_out(text: str, excluded: list[Term]) -> None:
    assert list(parse_words(text).excluded) == excluded


@given(st.text(max_size=60))
def test_no_text_is_a_syntax_error(text: str) -> None:
    assert all(term.tokens for term in parse_words(text).terms)
