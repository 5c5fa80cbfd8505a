import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.domain.criteria import Term
from personal_server.domain.search_words import parse_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("rain", [Term(("rain",))]),
        ("  heavy   rain ", [Term(("heavy",)), Term(("rain",))]),
        ('"heavy rain" wind', [Term(("heavy", "rain")), Term(("wind",))]),
        ('"heavy rain', [Term(("heavy", "rain"))]),
        ("ada@example.org", [Term(("ada", "example", "org"))]),
        ("ra*", [Term(("ra",), prefix=True)]),
        ("r*", [Term(("r",))]),
        ("foo-ba*", [Term(("foo", "ba"), prefix=True)]),
        ('"ra*"', [Term(("ra",))]),
        ("Caf\u00c9", [Term(("cafe",))]),
        ("rain OR wind", [Term(("rain",)), Term(("or",)), Term(("wind",))]),
        ("日本", [Term(("日", "本"))]),
        ('foo"bar baz"', [Term(("foo",)), Term(("bar", "baz"))]),
        ("& - *", []),
        ('""', []),
    ],
)
def test_search_text_becomes_terms(text: str, terms: list[Term]) -> None:
    assert list(parse_terms(text)) == terms


@given(st.text(max_size=60))
def test_no_text_is_a_syntax_error(text: str) -> None:
    assert all(term.tokens for term in parse_terms(text))
