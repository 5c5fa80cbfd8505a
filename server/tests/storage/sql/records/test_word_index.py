"""What a word index is fed with: words and stems of each field, under its mark."""

from __future__ import annotations

import struct

import pytest

from personal_server.storage.sql.records import word_index
from personal_server.storage.sql.records.word_index import marked_words, stem_mark


def counted(*counts: int) -> bytes:
    return struct.pack(f">{len(counts)}I", *counts)


def test_each_field_has_its_own_words_and_their_number() -> None:
    words, counts = marked_words(["Cold rain", None, 7, "", "Rom"])
    assert words.split() == ["0:cold", "0:rain", "4:rom"]
    assert counts == counted(2, 0, 0, 0, 1)
    assert marked_words([]) == ("", b"")
    assert marked_words([None]) == ("", counted(0))


def test_stems_stand_behind_the_words_of_their_field() -> None:
    words, counts = marked_words(["It rained and it was raining all day", "rain"])
    told = words.split()
    assert told[:3] == ["0:it", "0:rained", "0:and"]
    assert told[8:] == ["0~rain", "0~rain", "1:rain"]
    assert counts == counted(8, 1)


def test_other_languages_have_families() -> None:
    assert [stem_mark(3, family) for family in ("gmw", "roa")] == ["3~~gmw~", "3~~roa~"]
    usual = word_index.family_of(word_index.USUAL_LANGUAGE)
    assert stem_mark(3, usual) == "3~"
    italian = "Ieri pioveva a Roma e la gente correva sotto gli ombrelli verso la stazione"
    words, counts = marked_words([italian])
    assert counts == counted(14)
    assert [word for word in words.split() if word.startswith("0~~roa~piov")] != []
    assert not [word for word in words.split() if word.startswith("0~p")]


@pytest.mark.parametrize("taken", [1, 7, 20, 10_000])
def test_a_long_text_is_taken_apart_in_stretches(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "The dogs were barking and children laughed while it rained heavily outside again"
    whole = marked_words([text])
    monkeypatch.setattr(word_index, "_TAKEN_CHARS", taken)
    words, counts = marked_words([text])
    assert counts == whole[1] == counted(13)
    assert sorted(words.split()) == sorted(whole[0].split())
    assert [w for w in words.split() if ":" in w] == [w for w in whole[0].split() if ":" in w]


def test_short_and_long_texts_are_told_alike() -> None:
    short = "a" * 64
    for text in (short, short + "a"):
        for _ in range(2):
            assert marked_words([None, text]) == (f"1:{text}", counted(0, 1))
