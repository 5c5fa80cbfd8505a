"""A question without blanks is looked for by its words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdpp_kernel.criteria import NamedPiece, Term, WordQuery
from personal_server.domain.search_words import parse_words
from personal_server.domain.unspaced_words import parted


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("会議はいつですか", ["会議"]),
        ("Sommerfestはいつですか", ["Sommerfest"]),
        ("会議スケジュールの確認", ["会議", "スケジュール", "確認"]),
        ("会议是什么时候", ["会议", "议是", "是什", "什么", "么时", "时候"]),
        ("佐々木さんの会議", ["佐々木", "会議"]),
        ("会議、予定", ["会議", "予定"]),
        ("ガイドはどこ", ["ガイド"]),
        ("\u30ab\u3099イドはどこ", ["\u30ab\u3099イド"]),
    ],
)
def test_its_words_begin_where_the_script_changes(written: str, words: list[str]) -> None:
    found = parted(parse_words(written))
    assert found is not None
    assert [term.said for term in found.terms] == words


@pytest.mark.parametrize(("run", "parts"), [(4, 1), (5, 4), (9, 8), (10, None)])
def test_a_long_run_of_han_is_looked_for_by_its_pairs_and_not_by_too_many(
    run: int, parts: int | None
) -> None:
    found = parted(parse_words("一二三四五六七八九十"[:run] + "はいつ"))
    assert (None if found is None else len(found.terms)) == parts


def test_parts_are_words_with_forms_where_they_are_one_token() -> None:
    found = parted(parse_words("Sommerfest会議はいつ rain"))
    assert found is not None
    told = [(term.said, term.inflected, len(term.tokens)) for term in found.terms]
    assert told == [("Sommerfest", True, 1), ("会議", False, 2), ("rain", True, 1)]
    assert found.phrase is None
    assert parse_words("会議はいつ rain").phrase is not None


WHOLE = parse_words("会議はいつ").terms[0]


@pytest.mark.parametrize(
    "term",
    [
        replace(WHOLE, quoted=True),
        replace(WHOLE, prefix=True),
        replace(WHOLE, others=(WHOLE,)),
        replace(WHOLE, fields=("title",)),
        replace(WHOLE, named=NamedPiece("from", "会議")),
        replace(WHOLE, literal="会議は"),
        replace(WHOLE, said="where"),
    ],
)
def test_what_is_meant_as_it_stands_is_not_parted(term: Term) -> None:
    assert parted(WordQuery((WHOLE,))) is not None
    assert parted(WordQuery((term,))) is None


@pytest.mark.parametrize(
    "written", ["いつですか", "らーめん", "佐々木", "会議", "where is the café", '"会議はいつ"']
)
def test_what_has_no_such_words_stays_whole(written: str) -> None:
    assert parted(parse_words(written)) is None
