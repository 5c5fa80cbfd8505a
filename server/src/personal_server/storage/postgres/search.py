"""Full text on what is posted: how the word index of a source is asked.

What is posted tells the records of each word, each as often as it holds it, in blocks that lie in
time, so that hidden streams, fields and times are never read, and the newest records are the first.
Where all terms are words that stand alone this tells how often each record holds them.  Elsewhere,
and where the rarest is so rare that it takes less, the words of what is found tell it, in the order
of the text: so counts are those of every database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import orjson

from pdpp_kernel.criteria import Term
from personal_server.enforcement.rows import Candidate
from personal_server.storage.postgres.posted_words import Sought, of_each, postings
from personal_server.storage.sql.compiler import MAX_ID, Statement, Where
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.layout import FORM
from personal_server.storage.sql.reads.search import IndexedPart
from personal_server.storage.sql.reads.word_entries import Entry, entries
from personal_server.storage.sql.records.word_index import FAMILY_MARK, MARK, STEM_MARK

Asked = tuple[str, tuple[Value, ...]]
# How far back each word is read at first, and then further, where too few are found: until its
# blocks take so many bytes for each record wanted (an id is eight), and so many blocks at most.
MORE_BLOCKS = 100
READ_BACK = ((10, MORE_BLOCKS), (160, 1_000), (1 << 40, MAX_ID - 1))
# To look at the words of a record takes as long as to read so many ids.
WORDS_OF_ONE = 32
_WEIGHED = "json_to_recordset(CAST(? AS json))"
_CUT = "(SELECT at FROM cut)"
_TOLD = (
    f"SELECT {{place}} AS place, weight, unnest(ids || again) AS id FROM told WHERE last > {_CUT}"  # noqa: S608
)


class _Newest(NamedTuple):
    """The newest records that hold all terms, at most so many, and how they are come by.

    Shapes: `told` are the blocks of the rarest term that are read; `lead` is its place in `sought`.
    """

    told: Statement
    sought: Sequence[Sought]
    lead: int
    excluded: Sequence[Sought]
    most: int


class PostedPart(IndexedPart):
    """The index knows which records hold a word, and how often."""

    def holding_all(self) -> tuple[Sequence[Candidate], bool]:
        """Of the newest; their words are read where what is posted does not tell the hits."""
        limit = self._plan.window + 1
        lines, tells_hits = (
            self._newest_holding(limit) if self._is_by_id else (self._holding(limit), False)
        )
        candidates = lines[: limit - 1]
        if not tells_hits:
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
            "SELECT place, least(count(*), ?) FROM (SELECT DISTINCT f.place, f.id"  # noqa: S608
            " FROM (SELECT c.place, unnest(p.ids) AS id"
            " FROM json_array_elements(CAST(? AS json)) WITH ORDINALITY AS c (asked, place),"
            f" {of_each('c.asked', self._index, blocks.parts)}) AS f {self._ids_join}{visible.sql})"
            " AS met GROUP BY place",
            (limit, orjson.dumps(plain).decode(), *blocks.params, *visible.params),
        )
        counted, place = dict(lines), count(1)
        return [
            counted.get(next(place), 0) if entry.is_plain else self._frequency(term, limit)
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
            "SELECT count(*) FROM (SELECT DISTINCT f.id"  # noqa: S608
            " FROM (SELECT unnest(ids) AS id FROM blocks) AS f"
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

    def _instant(self, event: str) -> str:
        """The driver reads a text in less time than a `numeric`."""
        return event if self.place.event_unit_ns > 1 else f"CAST(trunc({event}) AS text)"

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
            f"SELECT {self._told('f.words')} FROM {self._index} f {self._join}{where.sql}"  # noqa: S608
            f" ORDER BY {self._newest()} LIMIT ?",
            (*where.params, limit),
        )

    def _newest_holding(self, most: int) -> tuple[list[Line], bool]:
        """By the newest blocks of the rarest term, further back where these are too few.

        And whether what is posted told how often they hold each term, and nothing else was read.
        """
        session, sought = self._reader.session, self._asked
        excluded = [Sought(term, self._places) for term in self._words.excluded]
        tells_hits = self.place.compiler.layout.form == FORM
        tells_hits &= all(entry.is_plain for entry in excluded)
        lead = 0
        if len(sought) > 1:
            sizes = [line[0] for line in session.rows(*self._sizes(sought))]
            lead = min(range(len(sought)), key=sizes.__getitem__)
            tells_hits &= sizes[lead] * WORDS_OF_ONE > sum(sizes) - sizes[lead]
        newest_of = self._newest_by_posted if tells_hits else self._newest_by_words
        lines: list[Line] = []
        for bytes_each, limit in READ_BACK:
            told = self._read_back(sought[lead], most * bytes_each, limit)
            newest = _Newest(told, sought, lead, excluded, most)
            *lines, end = session.rows(*newest_of(newest))
            if len(lines) >= most or end[0] is None:
                break
        return lines, tells_hits

    @property
    def _asked(self) -> list[Sought]:
        return [Sought(term, self._places) for term in self._words.terms if term.tokens]

    def _sizes(self, sought: Sequence[Sought]) -> Asked:
        """How many bytes the newest blocks of terms take."""
        visible = self.place.compiler.seen_blocks(self.place.scope)
        blocks = of_each(
            "c.asked", self._index, visible.parts, MORE_BLOCKS, " ORDER BY p.last DESC"
        )
        return (
            f"SELECT (SELECT coalesce(sum(pg_column_size(p.ids)), 0) FROM {blocks})"  # noqa: S608
            " FROM json_array_elements(CAST(? AS json)) WITH ORDINALITY AS c (asked, place)"
            " ORDER BY c.place",
            (*visible.params, orjson.dumps([entry.listed for entry in sought]).decode()),
        )

    def _read_back(self, lead: Sought, size_bytes: int, limit: int) -> Statement:
        """The blocks of one term (`told`) that are read, and the id behind which (`cut`) they are
        all: of each word until its newest take so many bytes, and no more than a number.
        """
        visible = self.place.compiler.seen_blocks(self.place.scope)
        where = " AND ".join(('p.term = a.term COLLATE "C"', *visible.parts))
        newer = "ORDER BY p.last DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        return Statement(
            "WITH told AS MATERIALIZED (SELECT a.weight, p.last, p.ids, p.again, p.is_left"  # noqa: S608
            f" FROM {_WEIGHED} AS a (term text, weight integer), LATERAL"
            f" (SELECT p.last, p.ids, p.again, count(*) OVER newer >= {limit}"
            f" OR coalesce(sum(pg_column_size(p.ids)) OVER newer, 0) >= {size_bytes} AS is_left"
            f" FROM {postings(self._index)} p WHERE {where} WINDOW newer AS ({newer})"
            f" ORDER BY p.last DESC LIMIT {limit + 1}) AS p), cut AS MATERIALIZED"
            f" (SELECT coalesce(max(last) FILTER (WHERE is_left), {-MAX_ID}) AS at FROM told)",
            (self._weights([(0, lead)]), *visible.params),
        )

    def _newest_by_posted(self, newest: _Newest) -> Asked:
        """By what is posted of the other terms there."""
        told, sought, lead, excluded, most = newest
        places = [number for number, term in enumerate(self._words.terms) if term.tokens]
        others = [(n, entry) for n, entry in zip(places, sought, strict=True) if n != places[lead]]
        others += [(-1, entry) for entry in excluded]
        leading = _TOLD.format(place=places[lead])
        arms, params, begun = [leading], told.params, told.sql
        if others:
            visible = self.place.compiler.seen_blocks(self.place.scope)
            behind = " AND ".join(
                ('p.term = a.term COLLATE "C"', *visible.parts, f"p.last > {_CUT}")
            )
            begun += f", leads AS MATERIALIZED ({leading})"
            arms = [
                "SELECT * FROM leads",
                # in this form the ids of the leading term are looked up by their hashes
                "SELECT * FROM (SELECT a.place, a.weight, unnest(p.ids || p.again) AS id FROM"  # noqa: S608
                f" {_WEIGHED} AS a (place integer, term text, weight integer), LATERAL"
                f" (SELECT p.ids, p.again FROM {postings(self._index)} p WHERE {behind} OFFSET 0)"
                " AS p) AS others WHERE (id IN (SELECT id FROM leads)) IS TRUE",
            ]
            params += (self._weights(others), *visible.params)
        sums = [f"sum(weight) FILTER (WHERE place = {place})" for place in places]
        hits, needed = "sum(weight)", ""
        if len(self._words.terms) > 1 or others:
            told_of = dict(zip(places, sums, strict=True))
            listed = (told_of.get(n, "0") for n in range(len(self._words.terms)))
            hits = f"concat_ws(' ', {', '.join(listed)})"
            met = (f"{each} > 0" for each in sums)
            needed = f" HAVING {' AND '.join((*met, 'count(*) FILTER (WHERE place < 0) = 0'))}"
        where = self._stretch & self.place.matching(self._conditions)
        # where nothing else is asked, only those that are wanted are looked up
        first = "" if where.parts else f" ORDER BY id DESC LIMIT {most}"
        return self._ended(
            f"{begun} (SELECT {self._told('f.hits')} FROM (SELECT id AS rowid, {hits} AS hits"  # noqa: S608
            f" FROM ({' UNION ALL '.join(arms)}) AS each WHERE id > {_CUT} GROUP BY id{needed}"
            f"{first}) AS f {self._join}{where.sql} ORDER BY f.rowid DESC LIMIT ?)",
            (*params, *where.params, most),
        )

    def _newest_by_words(self, newest: _Newest) -> Asked:
        """By the words of each that is found."""
        told, sought, lead, excluded, most = newest
        others = [entry for n, entry in enumerate(sought) if n != lead]
        where = Where(
            (*(entry.exact for entry in others), *(f"NOT {entry.exact}" for entry in excluded)),
            tuple(param for entry in (*others, *excluded) for param in entry.params),
        )
        where &= self._stretch & self.place.matching(self._conditions)
        return self._ended(
            f"{told.sql} (SELECT {self._told('f.words')} FROM (SELECT DISTINCT id AS rowid"  # noqa: S608
            f" FROM ({_TOLD.format(place=0)}) AS each WHERE id > {_CUT}) AS found"
            f" JOIN {self._index} f USING (rowid) {self._join}{where.sql}"
            " ORDER BY f.rowid DESC LIMIT ?)",
            (*told.params, *where.params, most),
        )

    def _ended(self, sql: str, params: tuple[Value, ...]) -> Asked:
        """Candidates, and a line behind them that says whether anything was left."""
        nulls = ", NULL" * 6
        left = f"CASE WHEN at > {-MAX_ID} THEN 'left' END"
        return f"{sql} UNION ALL SELECT {left}{nulls} FROM cut", params  # noqa: S608

    def _weights(self, placed: Iterable[tuple[int, Sought]]) -> str:
        """How much each word counts, with the place of its term."""
        return orjson.dumps(
            [
                {"place": place, "term": word, "weight": 2 if self._is_weighty(word) else 1}
                for place, entry in placed
                for word in entry.listed
            ]
        ).decode()

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
