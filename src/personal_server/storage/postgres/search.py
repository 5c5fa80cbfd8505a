"""Full text on tsvectors: how the word index of a source is asked.

The index finds the records, and their words, in the order of the text, tell how often each term
stands there: so counts are those of every database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import orjson

from personal_server.domain.criteria import Term
from personal_server.enforcement.rows import Candidate
from personal_server.storage.postgres.dialect import LEXEMES, LOOKED_AT, Sought, texts_in
from personal_server.storage.sql.compiler import Statement
from personal_server.storage.sql.search import IndexedPart
from personal_server.storage.sql.word_index import Entry, entries


class GinPart(IndexedPart):
    """The index knows which records hold words, not how often."""

    def holding_all(self) -> tuple[list[Candidate], bool]:
        """Of the newest, the words are read."""
        plan, number = self._plan, self._number
        where = self._matching(self._words, self.place.matching(self._conditions))
        matching = Statement(
            f"SELECT r.k, f.words, r.wc, {self._event_sql}, r.cs, r.ce, r.fc"  # noqa: S608
            f" FROM w{number} f {self._join}{where.sql} ORDER BY {self._newest()} LIMIT ?",
            (*where.params, plan.window + 1),
        )
        lines = self._reader.lines(self.place.source, matching)
        hits = _Hits(self._words.terms, self._places, self._weighty)
        counted = [(key, hits.of(words), *more) for key, words, *more in lines[: plan.window]]
        return self._ranked(counted), len(lines) > plan.window

    def count_each(self) -> list[int]:
        """Plain words in one statement: a spelling has hundreds of neighbours."""
        terms, limit = self._words.terms, self._plan.frequency_limit
        if not self._places:
            return [0] * len(terms)
        sought = [Sought(term, self._places) for term in terms]
        plain = [each for each in sought if each.is_plain]
        where = self._seen
        met = "" if not where.parts else f" AND {' AND '.join(where.parts)}"
        words = f"string_to_array(f.words, ' ') && ARRAY{texts_in('c.asked -> 1')}"
        counted = (
            f"SELECT 1 FROM {self._entries} WHERE {LEXEMES} @@ CAST(c.asked ->> 0 AS tsquery)"  # noqa: S608
            f" AND (f.is_long = 0 OR {words}){met} LIMIT ?"
        )
        asked = [(f"{each.lexemes} | '{LOOKED_AT}'", each.plain) for each in plain]
        lines = self._reader.session.rows(
            f"SELECT (SELECT count(*) FROM ({counted}) AS met)"  # noqa: S608
            " FROM json_array_elements(CAST(? AS json)) WITH ORDINALITY AS c (asked, place)"
            " ORDER BY c.place",
            (*where.params, limit, orjson.dumps(asked).decode()),
        )
        counts = iter(lines)
        return [
            next(counts)[0] if each.is_plain else self._frequency(term, limit)
            for term, each in zip(terms, sought, strict=True)
        ]


class _Hits:
    """How often each term stands among words; in weighty fields each counts twice."""

    def __init__(
        self, terms: Sequence[Term], places: Mapping[str, int], weighty: Collection[str]
    ) -> None:
        self._sought = [
            [
                (2 if field in weighty else 1, entry)
                for field, place in places.items()
                for entry in entries(field, place, term)
            ]
            for term in terms
        ]

    def of(self, words: str) -> str:
        """The hits of each term, with blanks between."""
        counted = Counter(words.split(" "))
        spread = f" {words} "
        return " ".join(
            str(sum(weight * _occurrences(entry, counted, spread) for weight, entry in sought))
            for sought in self._sought
        )


def _occurrences(entry: Entry, counted: Counter[str], spread: str) -> int:
    if not entry.is_prefix and len(entry.words) == 1:
        return counted[entry.words[0]]
    sought = f" {' '.join(entry.words)}{'' if entry.is_prefix else ' '}"
    count, at = 0, spread.find(sought)
    while at >= 0:
        count, at = count + 1, spread.find(sought, at + 1)
    return count
