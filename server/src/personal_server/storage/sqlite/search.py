"""Full text on FTS5: how the word index of a source is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import orjson

from pdpp_kernel.criteria import Term
from personal_server.enforcement.rows import Candidate
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.reads.search import IndexedPart
from personal_server.storage.sql.reads.word_entries import entries
from personal_server.storage.sqlite.dialect import in_any

# So many terms are asked for as one: a question costs as much as looking up several of them.
ASKED_TOGETHER = 16


@lru_cache(maxsize=4)
def _asked_each(
    terms: tuple[Term, ...], places: tuple[tuple[str, int], ...]
) -> tuple[list[str], list[str]]:
    """What the index is asked for each term, and for some together; alike for many sources."""
    indexes = dict(places)
    expressions = [in_any(term, indexes) for term in terms]
    begins = range(0, len(terms), ASKED_TOGETHER)
    return expressions, [" OR ".join(expressions[at : at + ASKED_TOGETHER]) for at in begins]


class FtsPart(IndexedPart):
    """The index counts what it finds."""

    def count_each(self) -> list[int]:
        """A spelling has hundreds of neighbours, of which hardly any occurs: some together first.

        Only of those of which one occurs each is counted.
        """
        terms, limit = self._words.terms, self._plan.frequency_limit
        totals = [0] * len(terms)
        if not self._places:
            return totals
        expressions, groups = _asked_each(terms, tuple(self._places.items()))
        asked = range(len(terms))
        if len(terms) > ASKED_TOGETHER:
            met = self._counted(groups, 1)
            asked = [at for at in asked if met[at // ASKED_TOGETHER]]
        counted = self._counted([expressions[at] for at in asked], limit) if asked else ()
        for at, count in zip(asked, counted, strict=True):
            totals[at] = count
        return totals

    def _counted(self, expressions: Sequence[str], limit: int) -> list[int]:
        """How many visible records each expression finds, up to a limit; all in one statement."""
        where = Where((f"w{self._number} MATCH c.value",)) & self._seen
        found = f"SELECT 1 FROM {self._entries}{where.sql} LIMIT ?"  # noqa: S608
        lines = self._reader.session.rows(
            f"SELECT (SELECT count(*) FROM ({found})) FROM json_each(?) c ORDER BY c.key",  # noqa: S608
            (*where.params, limit, orjson.dumps(expressions).decode()),
        )
        return [int(line[0]) for line in lines]

    def holding_all(self) -> tuple[Sequence[Candidate], bool]:
        """By the function that counts (`dialect`)."""
        plan, number = self._plan, self._number
        where = self._matching(self._words, self.place.matching(self._conditions))
        matching = Statement(
            f"SELECT {self._told(f'pdpp_hits(w{number}, ?)')} FROM w{number} f {self._join}"  # noqa: S608
            f"{where.sql}"
            f" ORDER BY {self._newest()} LIMIT ?",
            (self._weights(), *where.params, plan.window + 1),
        )
        lines = self._reader.lines(self.place.source, matching)
        return self._ranked(lines[: plan.window]), len(lines) > plan.window

    def _weights(self) -> str:
        """For each term how many phrases it has in each field, and what one of them counts."""
        return orjson.dumps(
            [
                [
                    (count, 2 if field in self._weighty else 1)
                    for field, count in _entry_counts(term, self._places).items()
                ]
                for term in self._words.terms
            ]
        ).decode()


def _entry_counts(term: Term, indexes: Mapping[str, int]) -> dict[str, int]:
    """How many entries of the index `in_any` asks for in each field, in their order."""
    return {field: len(entries(field, index, term)) for field, index in indexes.items()}
