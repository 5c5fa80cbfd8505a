"""The word index of a source: what it is fed with, and how it is asked.

Rule: each word of each field has a list of places of its own.  All fields stand in one column,
every word behind the place of its field among the lexical fields (`0:rained`, `1:rain`), so that a
search over some fields reads their lists, and never one that is longer or shorter by a word
somewhere else: how long it takes tells nothing about fields that are not searched.  Behind the
words of a field stand the stems of those that are not their own (`0~rain`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from personal_server.domain.criteria import Term, WordQuery
from personal_server.domain.search_words import spaced
from personal_server.domain.word_forms import forms, language_of, stems

# What stands between the place of a field and a word or stem: neither a letter nor a digit.
MARK, STEM_MARK = ":", "~"
# What no record holds.
_NO_WORD = f'"{MARK}"'
# So much of a text is taken apart at once: a very long one never lies in memory word by word.
_TAKEN_CHARS = 1 << 17


def marked_words(texts: Sequence[object]) -> tuple[str, bytes]:
    """The words of all fields, as the index takes them, and how many each field has."""
    parts: list[str] = []
    counts: list[int] = []
    for place, text in enumerate(texts):
        count = 0
        if isinstance(text, str):
            stemmed: list[str] = []
            language = language_of(text)
            for words in _taken(spaced(text)):
                parts.append(_marked(f"{place}{MARK}", words))
                other = list(filter(None, stems(words, language)))
                stemmed += [_marked(f"{place}{STEM_MARK}", other)] if other else []
                count += len(words)
            parts += stemmed
        counts.append(count)
    return " ".join(parts), struct.pack(f">{len(counts)}I", *counts)


def _marked(mark: str, words: list[str]) -> str:
    return mark + f" {mark}".join(words)


def word_count(counts: bytes, places: Iterable[int]) -> int:
    """The words of some fields; always the same work, however many there are."""
    known = struct.unpack(f">{len(counts) // 4}I", counts)
    return sum([known[place] for place in places])


def all_in_any(words: WordQuery, places: Mapping[str, int]) -> str:
    """Records that hold each term in at least one of the fields, and nothing that is excluded.

    Phrases stand term by term, for each term field by field.
    """
    sought = [term for term in words.terms if term.tokens]
    found = f"({' AND '.join(_in_any(term, places) for term in sought)})"
    return " NOT ".join([found, *(_in_any(term, places) for term in words.excluded)])


def one_in_any(
    term: Term, places: Mapping[str, int], excluded: Iterable[Term], among: Mapping[str, int]
) -> str:
    """Records that hold a term in one of the fields, and nothing that is excluded among others."""
    return " NOT ".join([_in_any(term, places), *(_in_any(each, among) for each in excluded)])


def entry_counts(term: Term, places: Mapping[str, int]) -> dict[str, int]:
    """How many entries of the index `all_in_any` asks for in each field, in their order."""
    return {field: len(_entries(field, place, term)) for field, place in places.items()}


def _in_any(term: Term, places: Mapping[str, int]) -> str:
    entries = [e for field, place in places.items() for e in _entries(field, place, term)]
    return f"({' OR '.join(entries or [_NO_WORD])})"


def _entries(field: str, place: int, term: Term) -> list[str]:
    found: list[str] = []
    for each in term.alternatives_in(field):
        if each.inflected:
            sought = sorted(forms(each.tokens[0]))
            found += [f'"{place}{mark}{form}"' for mark in (MARK, STEM_MARK) for form in sought]
        elif each.tokens:
            found.append(phrase(place, each.tokens, prefix=each.prefix))
    return found


def phrase(place: int, words: Iterable[str], *, prefix: bool = False) -> str:
    """Adjacent words of one field; they are letters and digits only, so that nothing is quoted."""
    listed = " ".join(f"{place}{MARK}{word}" for word in words)
    return f'"{listed}"{" *" if prefix else ""}'


def _taken(words: str) -> Iterable[list[str]]:
    """The words of a spaced text, a stretch of it at a time."""
    start = 0
    while start < len(words):
        end = words.find(" ", start + _TAKEN_CHARS)
        end = len(words) if end < 0 else end
        if found := words[start:end].split():
            yield found
        start = end
