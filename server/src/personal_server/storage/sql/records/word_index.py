"""The word index of a source: what it is fed with; `reads/word_entries.py` says how it is asked.

Rule: each word of each field has a list of places of its own.  All fields stand in one column,
every word behind the place of its field among the lexical fields (`0:rained`, `1:rain`), so that a
search over some fields reads their lists, and never one that is longer or shorter by a word
somewhere else: how long it takes tells nothing about fields that are not searched.  Behind the
words of a field stand their stems: in English, in which most texts are, of those that are not
their own (`0~rain`), in others of every word, under their family of languages (`0~~roa~piov`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

from personal_server.domain.language_names import USUAL_LANGUAGE
from personal_server.domain.spaced_text import spaced
from personal_server.domain.text_language import language_of
from personal_server.domain.word_forms import family_of, stems

# What stands between the place of a field and a word or stem: neither a letter nor a digit.
MARK, STEM_MARK = ":", "~"
# Before a family of languages: no word of a text in the usual one has it.
FAMILY_MARK = STEM_MARK * 2
# So much of a text is taken apart at once: a very long one never lies in memory word by word.
_TAKEN_CHARS = 1 << 17
# Texts of at most so many characters are kept in memory with their words.
_OFTEN_CHARS = 64


def marked_words(texts: Sequence[object]) -> tuple[str, bytes]:
    """The words of all fields, as the index takes them, and how many each field has."""
    parts, counts = list[str](), list[int]()
    for index, text in enumerate(texts):
        marked, count = "", 0
        if isinstance(text, str):
            # names, addresses and labels come again and again
            mark = _marked_often if len(text) <= _OFTEN_CHARS else _marked_text
            marked, count = mark(index, text)
        parts += [marked] if marked else []
        counts.append(count)
    return " ".join(parts), struct.pack(f">{len(counts)}I", *counts)


def _marked_text(index: int, text: str) -> tuple[str, int]:
    """The words of a field and behind them its stems, marked, and how many words they are."""
    parts, stemmed, count, language = list[str](), list[str](), 0, language_of(text)
    mark, other_mark = _marks(index, language)
    for words in _taken(spaced(text)):
        parts += [mark, mark.join(words)]
        if other := [*filter(None, stems(words, language))]:
            stemmed += [other_mark, other_mark.join(other)]
        count += len(words)
    return "".join([*parts, *stemmed])[1:], count


_marked_often = lru_cache(maxsize=4_096)(_marked_text)


def stem_mark(index: int, family: str) -> str:
    """What stands before the stems of a field in a family of languages."""
    is_usual = family == family_of(USUAL_LANGUAGE)
    return f"{index}{STEM_MARK}" if is_usual else f"{index}{FAMILY_MARK}{family}{STEM_MARK}"


@lru_cache(maxsize=1_024)
def _marks(index: int, language: str | None) -> tuple[str, str]:
    """What stands between words of a field, and between their stems in a language."""
    return f" {index}{MARK}", f" {stem_mark(index, family_of(language or USUAL_LANGUAGE))}"


def _taken(words: str) -> Iterable[list[str]]:
    """The words of a spaced text, a stretch of it at a time."""
    start = 0
    while start < len(words):
        end = words.find(" ", start + _TAKEN_CHARS)
        end = len(words) if end < 0 else end
        if words_found := words[start:end].split():
            yield words_found
        start = end
