"""What the word index of a source is asked for, and what it counted.

What it holds: `records/word_index.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pdpp_kernel.criteria import Term
from personal_server.domain.word_forms import forms
from personal_server.storage.sql.records.word_index import MARK, stem_mark


class Entry(NamedTuple):
    """Marked words that stand beside each other; of the last, if `is_prefix`, the beginning.

    They are letters and digits only, behind their mark.
    """

    words: tuple[str, ...]
    is_prefix: bool = False


def word_counts(counts: Sequence[bytes], indexes: Sequence[int]) -> list[int]:
    """The words of some fields of each text; always the same work, however many there are."""
    unpacked = [_counts_in(len(counts_of_word))(counts_of_word) for counts_of_word in counts]
    totals = [row[indexes[0]] for row in unpacked]
    for index in indexes[1:]:
        totals = [count + row[index] for count, row in zip(totals, unpacked, strict=True)]
    return totals


@lru_cache(maxsize=64)
def _counts_in(size_bytes: int) -> Callable[[bytes], tuple[int, ...]]:
    return struct.Struct(f">{size_bytes // 4}I").unpack


def sought_entries(term: Term, indexes: Mapping[str, int]) -> list[Entry]:
    """What an index is asked for where a term is sought in fields, by their places in it."""
    return [entry for field, index in indexes.items() for entry in entries(field, index, term)]


def entries(field: str, index: int, term: Term) -> list[Entry]:
    """The same of one field; what most records are found by stands first."""
    entries_found: list[Entry] = []
    for alternative in term.alternatives_in(field):
        if alternative.inflected:
            sought = forms(alternative.tokens[0])
            entries_found += [Entry((marked(index, word),)) for word in sought.words]
            for family, stemmed in sought.stems.items():
                entries_found += [Entry((stem_mark(index, family) + stem,)) for stem in stemmed]
        elif alternative.tokens:
            words = tuple(marked(index, word) for word in alternative.tokens)
            entries_found.append(Entry(words, is_prefix=alternative.prefix))
    return entries_found


def marked(index: int, word: str) -> str:
    """A word of a field as it stands in the index, by the place of the field."""
    return f"{index}{MARK}{word}"
