"""Words of records, posted in blocks that PostgreSQL finds by a word.

Rule: a block holds the ids of records that were written together and lie near in time.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, islice, pairwise

import orjson

from pdpp_kernel.criteria import Term
from personal_server.storage.sql.dialect import Conditions, Value
from personal_server.storage.sql.reads.word_entries import Entry, sought_entries

# A posted word has at most so many characters of a longer one; a set of words so many bytes.
LONGEST_POSTED_CHARS = 500
MOST_POSTED_BYTES = 1_000_000
# How many columns, and how long the first is; the length of an id, and it; of an array, its head.
_BINARY_LINE, _BINARY_ID = struct.Struct(">hi").pack, struct.Struct(">iq").pack
_BINARY_ARRAY, _BINARY_NULL = struct.Struct(">6i").pack, b"\xff" * 4
# Behind every word that begins with another.
_END_OF_PREFIX = "\U0010ffff"


def texts_in(array: str) -> str:
    """A set of texts, from an array of JSON."""
    return f'(SELECT value COLLATE "C" FROM json_array_elements_text({array}) AS value)'  # noqa: S608


POSTED_TOGETHER = 2_000
# Of these places in time a block holds those that differ in later bits: a year.
_BITS_TOGETHER = 50


def postings(index: str) -> str:
    """The table of what is posted of a word index."""
    return f"p{index[1:]}"


def posted_blocks(lines: Sequence[tuple[int, str]]) -> Iterator[bytes]:
    """The blocks of the words of lines, in the binary format of `COPY`: word, first and last id,
    all of them, and those of lines that hold it once more.

    So they take half the room, and neither side renders or reads a number for each word.
    """
    for _, in_time in groupby(lines, lambda line: line[0] >> _BITS_TOGETHER):
        while together := list(islice(in_time, POSTED_TOGETHER)):
            lists = defaultdict[str, list[bytes]](list)
            for number, marked in together:
                binary_number = _BINARY_ID(8, number)
                for word in marked.split(" "):
                    lists[word].append(binary_number)
            for word in sorted(lists):
                ids, again = lists[word], _BINARY_NULL
                # most words stand in one line of a block
                once = ids if len(ids) == 1 else dict.fromkeys(ids)
                if len(once) < len(ids):
                    again = _binary_array(
                        [number for last, number in pairwise(ids) if number is last]
                    )
                term = word[:LONGEST_POSTED_CHARS].encode()
                head = _BINARY_LINE(5, len(term)) + term + ids[0] + ids[-1]
                yield head + _binary_array(once) + again


def _binary_array(ids: Collection[bytes]) -> bytes:
    """Of `bigint` (its `oid`), in one dimension that begins at 1, without nulls."""
    count = len(ids)
    return _BINARY_ARRAY(20 + 12 * count, 1, 0, 20, count, 1) + b"".join(ids)


def is_too_long(marked: str) -> bool:
    """Whether words are more, or longer, than a set of them holds."""
    start, beyond = 0, LONGEST_POSTED_CHARS + 1
    while len(marked) - start >= beyond:
        blank = marked.rfind(" ", start, start + beyond)
        if blank < 0:
            return True
        start = blank + 1
    return len(marked.encode()) > MOST_POSTED_BYTES


class Sought:
    """A term in some fields: where it is posted, and what the words themselves must be.

    `listed` are the words that stand alone, all that is asked where it `is_plain`; where it
    `is_posted`, the words need not be looked at.
    """

    def __init__(self, term: Term, indexes: Mapping[str, int]) -> None:
        entries_sought = sought_entries(term, indexes)
        short = [
            all(len(w) < LONGEST_POSTED_CHARS for w in entry.words) for entry in entries_sought
        ]
        self.is_posted = all(short) and all(len(entry.words) == 1 for entry in entries_sought)
        alone = [entry for entry in entries_sought if len(entry.words) == 1 and not entry.is_prefix]
        self.is_plain = self.is_posted and len(alone) == len(entries_sought)
        self.listed = [entry.words[0] for entry in alone]
        posted = [word[:LONGEST_POSTED_CHARS] for word in self.listed]
        self._listed = orjson.dumps(posted).decode()
        self._lead = [_leading(entry) for entry in entries_sought if entry not in alone]
        rest_of_entries = [entry for entry in entries_sought if entry not in alone]
        parts = ["strpos(' ' || f.words || ' ', ?) > 0"] * len(rest_of_entries)
        self.params: list[Value] = [
            f" {' '.join(entry.words)}{'' if entry.is_prefix else ' '}" for entry in rest_of_entries
        ]
        if self.listed:
            parts.append(f"string_to_array(f.words, ' ') && ARRAY{texts_in('CAST(? AS json)')}")
            self.params.append(orjson.dumps(self.listed).decode())
        self.exact = f"({' OR '.join(parts)})" if parts else "(1 = 0)"

    def posted(self, index: str, visible: Conditions) -> tuple[str, list[Value]]:
        """The statement that gives the ids of what is posted, in blocks `p` that meet conditions.

        An id may come several times.
        """
        arms = [(of_each("CAST(? AS json)", index, visible[0]), [self._listed])]
        for lead in self._lead:
            between = " AND ".join(("p.term >= ?", "p.term <= ?", *visible[0]))
            arms.append((f"(SELECT p.ids FROM {postings(index)} p WHERE {between}) AS p", [*lead]))  # noqa: S608
        union = " UNION ALL ".join(
            f"SELECT unnest(p.ids) AS id FROM {blocks}"  # noqa: S608
            for blocks, _ in arms
        )
        return f"({union})", [param for _, params in arms for param in (*params, *visible[1])]


def of_each(
    terms: str, index: str, parts: Sequence[str], limit: int | None = None, order: str = ""
) -> str:
    """The blocks `p` of each of some words `a`, found by the index of these."""
    where = " AND ".join(('p.term = a.term COLLATE "C"', *parts))
    until = "OFFSET 0" if limit is None else f"LIMIT {limit}"
    return (
        f"json_array_elements_text({terms}) AS a (term), LATERAL (SELECT p.last, p.ids, p.again"  # noqa: S608
        f" FROM {postings(index)} p WHERE {where}{order} {until}) AS p"
    )


def _leading(entry: Entry) -> tuple[str, str]:
    """The first and the last word that a line with an entry may be found by."""
    whole = entry.words[:-1] if entry.is_prefix else entry.words
    if not whole:
        begun = entry.words[0][:LONGEST_POSTED_CHARS]
        return begun, begun + _END_OF_PREFIX
    # the longest is rarely a common one
    word = max(whole, key=len)[:LONGEST_POSTED_CHARS]
    return word, word
