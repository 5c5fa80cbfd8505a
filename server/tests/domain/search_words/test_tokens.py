from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from personal_server.domain.search_words import (
    ranges_of,
    spans,
    tokens,
)
from personal_server.domain.spaced_text import spaced


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Heavy rain, & WIND!", ["heavy", "rain", "wind"]),
        ("ada@example.org", ["ada", "example", "org"]),
        ("snake_case-and 3.14", ["snake", "case", "and", "3", "14"]),
        ("Café déjà", ["cafe", "deja"]),
        ("Cafe\u0301", ["cafe"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("ﬁn Ⅷ x²", ["fin", "viii", "x2"]),
        ("東京に行く", ["東", "京", "に", "行", "く"]),
        ("rainสวัdry", ["rain", "ส", "ว", "dry"]),
        ("İstanbul", ["istanbul"]),
        ("Привет, МИР", ["привет", "мир"]),
    ],
)
def test_text_becomes_folded_runs_of_letters_and_digits(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_composed_and_decomposed_hangul_are_the_same_tokens() -> None:
    assert tokens("한국어") == tokens("\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165")


@given(st.text())
def test_spans_are_the_tokens_in_their_places(text: str) -> None:
    found = spans(text)
    assert [span.token for span in found] == tokens(text)
    assert all(0 <= span.start < span.end <= len(text) for span in found)
    assert all(a.start <= b.start for a, b in itertools.pairwise(found))


@given(st.text() | st.text(alphabet="aé b") | st.text(alphabet="ab \n"))
def test_ranges_of_some_tokens_are_those_of_their_spans(text: str) -> None:
    found = [(span.start, span.end) for span in spans(text)]
    spread = spaced(text)
    for shown in (range(len(found)), range(1, len(found), 2)):
        assert ranges_of(text, shown, spread, spread.split()) == [found[at] for at in shown]


@given(st.text())
def test_tokens_of_tokens_are_the_same(text: str) -> None:
    assert tokens(spaced(text)) == tokens(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_the_ascii_road_gives_the_same_tokens(text: str) -> None:
    assert tokens(text + " é") == [*tokens(text), "e"]


def test_a_combining_mark_stays_inside_its_word() -> None:
    (span,) = spans("re\u0301sume\u0301")
    assert (span.token, span.start, span.end) == ("resume", 0, 8)
