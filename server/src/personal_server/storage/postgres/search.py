"""Full text on what is posted: how the word index of a source is asked.

What is posted tells the records of each word, each as often as it holds it, in blocks that lie in
time, so that hidden streams, fields and times are never read, and the newest records are the first.
Where more is asked than one term of words that stand alone, the words of what is found, in the
order of the text, tell how often each term stands there: so counts are those of every database.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import orjson

from pdpp_kernel.criteria import Term
from personal_server.enforcement.rows import Candidate
from personal_server.storage.postgres.posted_words import Sought, of_each, texts_in
from personal_server.storage.sql.compiler import MAX_ID, Statement, Where
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.layout import FORM
from personal_server.storage.sql.reads.search import IndexedPart
from personal_server.storage.sql.reads.word_entries import Entry, entries
from personal_server.storage.sql.records.word_index import FAMILY_MARK, MARK, STEM_MARK

Asked = tuple[str, tuple[Value, ...]]
# Of each word, the newest blocks are read at first: so many, and then so many more.
FIRST_BLOCKS, MORE_BLOCKS = 3, 100
READ_BLOCKS = (FIRST_BLOCKS, 12, MORE_BLOCKS, MAX_ID - 1)


class PostedPart(IndexedPart):
    """The index knows which records hold a word, and how often."""

    def holding_all(self) -> tuple[Sequence[Candidate], bool]:
        """Of the newest; their words are read where what is posted does not tell the hits."""
        limit = self._plan.window + 1
        lines = self._newest_holding(limit) if self._is_by_id else self._holding(limit)
        candidates = lines[: limit - 1]
        if not self._tells_hits:
            hits = _Hits(self._words.terms, self._places, self._weighty)
            candidates = [(key, hits.of(words), *more) for key, words, *more in candidates]
        return self._ranked(candidates), len(lines) >= limit

    def count_each(self) -> list[int]:
        """Plain words in one statement: a spelling has hundreds of neighbours."""
        terms, limit = self._words.terms, self._plan.frequency_limit
        if not self._places:
            return [0] * len(terms)
        sought = [Sought(term, self._places) for term in terms]
        plain = [entry.listed for entry in sought if entry.is_plain]
        blocks, visible = self.place.compiler.seen_blocks(self.place.scope), self._seen_ids
        lines = self._reader.session.rows(
            f"SELECT (SELECT count(*) FROM (SELECT DISTINCT f.id"  # noqa: S608
            f" FROM {of_each('c.asked', self._index, blocks.parts)}, unnest(p.ids) AS f (id)"
            f" {self._ids_join}{visible.sql} LIMIT ?) AS met)"
            " FROM json_array_elements(CAST(? AS json)) WITH ORDINALITY AS c (asked, place)"
            " ORDER BY c.place",
            (*blocks.params, *visible.params, limit, orjson.dumps(plain).decode()),
        )
        counts = iter(lines)
        return [
            next(counts)[0] if entry.is_plain else self._frequency(term, limit)
            for term, entry in zip(terms, sought, strict=True)
        ]

    def counts(self, totals: Sequence[int]) -> list[int]:
        """Of plain terms by their newest blocks, all at once, where these are enough."""
        terms, limit = self._words.terms, self._plan.frequency_limit
        plain = {
            n: entry
            for n, term in enumerate(terms)
            if term.tokens and self._places and limit > totals[n]
            if (entry := Sought(term, self._places)).is_plain
        }
        answers = self._reader.session.several(
            [self._counted(entry, limit - totals[n]) for n, entry in plain.items()]
        )
        plain_counts = {n: lines[0] for n, lines in zip(plain, answers, strict=True)}
        return [
            plain_counts[n][0]
            if n in plain_counts
            and (plain_counts[n][0] >= limit - totals[n] or not plain_counts[n][1])
            else self._frequency(term, limit - totals[n] if self._places else 0)
            for n, term in enumerate(terms)
        ]

    def _counted(self, sought: Sought, limit: int) -> Asked:
        """How many visible records the newest blocks know, and whether there are more of these."""
        newest, visible = self._blocks(sought, MORE_BLOCKS), self._seen_ids
        read = visible & Where(("f.id > (SELECT at FROM cut)",))
        counted = (
            f"SELECT count(*) FROM (SELECT DISTINCT f.id FROM blocks, unnest(ids) AS f (id)"  # noqa: S608
            f" {self._ids_join}{read.sql} LIMIT ?) AS met"
        )
        sums = "SELECT sum(cardinality(ids)) AS held FROM blocks GROUP BY term"
        # where nothing is hidden, those of one word may be as many as are counted
        least = "0" if read.parts[1:] else f"(SELECT max(held) FROM ({sums}) AS each)"  # noqa: S608
        return (
            f"{newest.sql} SELECT CASE WHEN {least} >= ? THEN ? ELSE ({counted}) END,"  # noqa: S608
            f" (SELECT at > {-MAX_ID} FROM cut)",
            (*newest.params, limit, limit, *visible.params, limit),
        )

    @property
    def _index(self) -> str:
        return f"w{self._number}"

    @property
    def _hits(self) -> str:
        """How often the only term is held, or the words that tell it."""
        return "f.hits" if self._tells_hits else "f.words"

    def _instant(self, event: str) -> str:
        """The driver reads a text in less time than a `numeric`."""
        return event if self.place.event_unit_ns > 1 else f"CAST(trunc({event}) AS text)"

    @property
    def _tells_hits(self) -> bool:
        """Whether what is posted tells all: how often the only term is held, and nothing else."""
        is_alone = len(self._words.terms) == 1 and not self._words.excluded
        return is_alone and self._is_by_id and self.place.compiler.layout.form == FORM

    @property
    def _is_by_id(self) -> bool:
        """Whether the newest records have the highest ids, and all words stand alone."""
        sought = self._asked
        is_plain = bool(sought) and all(entry.is_plain for entry in sought)
        return is_plain and self._newest() == "f.rowid DESC"

    @property
    def _seen_ids(self) -> Where:
        """What is visible of ids `f.id`."""
        return self.place.compiler.stretch(self.place.scope, "f.id") & self.place.visible()

    @property
    def _ids_join(self) -> str:
        """The lines of ids, where something may be hidden."""
        if not self.place.visible().parts:
            return ""
        dialect = self._reader.session.dialect
        return dialect.with_line("f.id", self.place.compiler.lines())

    def _blocks(self, sought: Sought, limit: int) -> Statement:
        """The newest blocks of each word, and the id behind which (`cut`) they are all."""
        visible = self.place.compiler.seen_blocks(self.place.scope)
        blocks = of_each(
            "CAST(? AS json)", self._index, visible.parts, limit + 1, " ORDER BY p.last DESC"
        )
        return Statement(
            f"WITH blocks AS MATERIALIZED (SELECT a.term, p.last, p.ids, p.again FROM {blocks}),"  # noqa: S608
            f" cut AS MATERIALIZED (SELECT coalesce(max(oldest), {-MAX_ID}) AS at FROM"
            f" (SELECT min(last) AS oldest FROM blocks GROUP BY term HAVING count(*) > {limit})"
            " AS each)",
            (orjson.dumps(sought.listed).decode(), *visible.params),
        )

    def _holding(self, limit: int) -> list[Line]:
        """All that is posted of each term, put together."""
        where = self._matching(self._words, self.place.matching(self._conditions))
        return self._reader.session.rows(
            f"SELECT {self._told(self._hits)} FROM {self._index} f {self._join}{where.sql}"  # noqa: S608
            f" ORDER BY {self._newest()} LIMIT ?",
            (*where.params, limit),
        )

    def _newest_holding(self, most: int) -> list[Line]:
        """By the newest blocks of the rarest term, further back where these are too few.

        The words of what it finds are looked at for the other terms.
        """
        session, sought = self._reader.session, self._asked
        asked_sizes = self._sizes(sought)
        if len(sought) == 1:
            first = self._newest_of(sought, 0, FIRST_BLOCKS, most)
            sizes, lines = session.several([asked_sizes, first])
            lead = 0
        else:
            [sizes] = session.several([asked_sizes])
            lead = min(range(len(sought)), key=lambda n: sizes[n][0])
            lines = session.rows(*self._newest_of(sought, lead, FIRST_BLOCKS, most))
        for read, limit in pairwise(READ_BLOCKS):
            if len(lines) < most and sizes[lead][0] > read:
                lines = session.rows(*self._newest_of(sought, lead, limit, most))
        return lines

    @property
    def _asked(self) -> list[Sought]:
        return [Sought(term, self._places) for term in self._words.terms if term.tokens]

    def _sizes(self, sought: Sequence[Sought]) -> Asked:
        """How many blocks terms have, counted up to a number for each word."""
        visible = self.place.compiler.seen_blocks(self.place.scope)
        blocks = of_each("c.asked", self._index, visible.parts, MORE_BLOCKS + 1)
        return (
            f"SELECT (SELECT count(*) FROM {blocks})"  # noqa: S608
            " FROM json_array_elements(CAST(? AS json)) WITH ORDINALITY AS c (asked, place)"
            " ORDER BY c.place",
            (*visible.params, orjson.dumps([entry.listed for entry in sought]).decode()),
        )

    def _newest_of(self, sought: Sequence[Sought], lead: int, limit: int, window: int) -> Asked:
        """The newest that are found by the newest blocks of one term, and hold all."""
        other_entries = [entry for n, entry in enumerate(sought) if n != lead]
        excluded = [Sought(term, self._places) for term in self._words.excluded]
        where = Where(
            (
                *(entry.exact for entry in other_entries),
                *(f"NOT {entry.exact}" for entry in excluded),
            ),
            tuple(param for entry in (*other_entries, *excluded) for param in entry.params),
        )
        where &= self._stretch & self.place.matching(self._conditions)
        blocks = self._blocks(sought[lead], limit)
        # where nothing else is asked, only those that are wanted are looked up
        first = "" if where.parts else f" ORDER BY id DESC LIMIT {window}"
        weighty = orjson.dumps([word for word in sought[lead].listed if self._is_weighty(word)])
        from_part = "f" if self._tells_hits else f"found JOIN {self._index} f USING (rowid)"
        weight = f"CASE WHEN term IN {texts_in('CAST(? AS json)')} THEN 2 ELSE 1 END"
        return (
            f"{blocks.sql} SELECT {self._told(self._hits)}"  # noqa: S608
            " FROM (SELECT id AS rowid, sum(weight) AS hits"
            f" FROM (SELECT {weight} AS weight, ids || again AS ids FROM blocks) AS weighed,"
            " unnest(ids) AS id"
            f" WHERE id > (SELECT at FROM cut) GROUP BY id{first}) AS"
            f" {from_part} {self._join}{where.sql} ORDER BY f.rowid DESC LIMIT ?",
            (*blocks.params, weighty.decode(), *where.params, window),
        )

    def _is_weighty(self, word: str) -> bool:
        """Of a word behind the mark of its field."""
        return any(
            word.startswith((f"{index}{MARK}", f"{index}{STEM_MARK}"))
            for field, index in self._places.items()
            if field in self._weighty
        )


class _Hits:
    """How often each term stands among words; in weighty fields each counts twice."""

    def __init__(
        self, terms: Sequence[Term], indexes: Mapping[str, int], weighty: Collection[str]
    ) -> None:
        self._everywhere = [
            [
                (2 if field in weighty else 1, _sought_text(entry))
                for field, index in indexes.items()
                for entry in entries(field, index, term)
            ]
            for term in terms
        ]
        self._usual = [
            [(weight, text) for weight, text in sought if FAMILY_MARK not in text]
            for sought in self._everywhere
        ]

    def of(self, words: str) -> str:
        """The hits of each term, with blanks between."""
        spread = f" {words} "
        matcher = self._everywhere if FAMILY_MARK in words else self._usual
        return " ".join(
            str(sum(weight * _occurrences(text, spread) for weight, text in sought))
            for sought in matcher
        )


def _sought_text(entry: Entry) -> str:
    return f" {' '.join(entry.words)}{'' if entry.is_prefix else ' '}"


def _occurrences(sought: str, spread: str) -> int:
    """Also of those that share a blank."""
    count, at = 0, spread.find(sought)
    while at >= 0:
        count, at = count + 1, spread.find(sought, at + 1)
    return count
