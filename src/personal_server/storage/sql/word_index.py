"""The word index of a source: what it is fed with, and how it is asked.

Rule: each word of each field has a list of places of its own.  All fields stand in one column,
every word behind the place of its field among the lexical fields (`0:rain`, `1:rain`), so that a
search over some fields reads their lists, and never one that is longer or shorter by a word
somewhere else: how long it takes tells nothing about fields that are not searched.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from personal_server.domain.criteria import Term
from personal_server.domain.search_words import spaced

# What stands between the place of a field and a word: neither a letter nor a digit.
MARK = ":"
# So much of a text is taken apart at once: a very long one never lies in memory word by word.
_TAKEN_CHARS = 1 << 17


def marked_words(texts: Sequence[object]) -> tuple[str, bytes]:
    """The words of all fields, as the index takes them, and how many each field has."""
    parts: list[str] = []
    counts: list[int] = []
    for place, text in enumerate(texts):
        count = 0
        for words in _taken(spaced(text)) if isinstance(text, str) else ():
            mark = f"{place}{MARK}"
            parts.append(mark + f" {mark}".join(words))
            count += len(words)
        counts.append(count)
    return " ".join(parts), struct.pack(f">{len(counts)}I", *counts)


def word_count(counts: bytes, places: Iterable[int]) -> int:
    """The words of some fields; always the same work, however many there are."""
    known = struct.unpack(f">{len(counts) // 4}I", counts)
    return sum([known[place] for place in places])


def all_in_any(terms: Iterable[Term], places: Sequence[int]) -> str:
    """Records that hold each term in at least one of the fields.

    Phrases stand term by term, for each term field by field.
    """
    return " AND ".join(
        f"({' OR '.join(phrase(place, term.tokens, prefix=term.prefix) for place in places)})"
        for term in terms
    )


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
