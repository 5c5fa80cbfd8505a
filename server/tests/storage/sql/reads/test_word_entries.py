"""What an index of words is asked for, and how its counts are read."""

from __future__ import annotations

import struct

import pytest

from pdpp_kernel.criteria import Term
from personal_server.storage.sql.reads.word_entries import (
    Entry,
    entries,
    sought_entries,
    word_counts,
)


def test_words_of_some_fields_are_added() -> None:
    counts = [struct.pack(">3I", 1, 20, 300), struct.pack(">3I", 4, 50, 600)]
    assert word_counts(counts, [0]) == [1, 4]
    assert word_counts(counts, [1, 2]) == [320, 650]
    assert word_counts(counts, [2, 0, 1]) == [321, 654]
    assert word_counts([struct.pack(">2I", 7, 1 << 31)], [1]) == [1 << 31]


def test_a_term_is_sought_under_the_mark_of_its_field() -> None:
    beginning = Term(("heavy", "rai"), prefix=True)
    assert entries("body", 1, beginning) == [Entry(("1:heavy", "1:rai"), is_prefix=True)]
    assert sought_entries(Term(("rain",)), {"title": 0, "body": 1}) == [
        Entry(("0:rain",)),
        Entry(("1:rain",)),
    ]
    assert sought_entries(Term(("rain",)), {}) == []


@pytest.mark.parametrize("index", [0, 4])
def test_other_forms_are_sought_by_word_and_by_stem(index: int) -> None:
    found = entries("body", index, Term(("raining",), inflected=True))
    marks = [entry.words[0] for entry in found]
    assert f"{index}:raining" in marks
    assert f"{index}~rain" in marks
    assert all(len(entry.words) == 1 and not entry.is_prefix for entry in found)
    assert len(marks) == len(set(marks))
    # what most records are found by stands first
    is_word = [mark.startswith(f"{index}:") for mark in marks]
    assert is_word == sorted(is_word, reverse=True)


def test_an_alternative_without_words_asks_for_nothing() -> None:
    assert entries("body", 0, Term(("rain",), others=(Term(()),))) == [Entry(("0:rain",))]
    assert entries("body", 0, Term((), others=(Term(("snow",)),))) == [Entry(("0:snow",))]
