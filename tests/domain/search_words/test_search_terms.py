import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.domain.criteria import Term
from personal_server.domain.search_words import parse_terms


def word(token: str) -> Term:
    return Term((token,), inflected=True)


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
        ("rain OR wind", [word("rain"), word("or"), word("wind")]),
        ("日本", [Term(("日", "本"))]),
        ('foo"bar baz"', [word("foo"), Term(("bar", "baz"))]),
        ("& - *", []),
        ('""', []),
    ],
)
def test_search_text_becomes_terms(text: str, terms: list[Term]) -> None:
    assert list(parse_terms(text)) == terms


@given(st.text(max_size=60))
def test_no_text_is_a_syntax_error(text: str) -> None:
    assert all(term.tokens for term in parse_terms(text))
