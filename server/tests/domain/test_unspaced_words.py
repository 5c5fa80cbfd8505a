"""A question without blanks is looked for by its words."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    "written", ["いつですか", "らーめん", "佐々木", "会議", "where is the café", '"会議はいつ"']
)
def test_what_has_no_such_words_stays_whole(written: str) -> None:
    assert parted(parse_words(written)) is None
