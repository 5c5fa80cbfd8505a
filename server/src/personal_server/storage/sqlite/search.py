"""Full text on FTS5: how the word index of a source is asked."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from pdpp_kernel.criteria import Term, WordQuery
from personal_server.enforcement.rows import Candidate
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.reads.search import IndexedPart
from personal_server.storage.sql.records.word_index import entries
from personal_server.storage.sqlite.dialect import all_in_any


class FtsPart(IndexedPart):
    """The index counts what it finds."""

    def count_each(self) -> list[int]:
        """All in one statement: a spelling has hundreds of neighbours."""
        terms, limit = self._words.terms, self._plan.frequency_limit
        if not self._places:
            return [0] * len(terms)
        where = Where((f"w{self._number} MATCH c.value",)) & self._seen
        counted = f"SELECT 1 FROM {self._entries}{where.sql} LIMIT ?"  # noqa: S608
        expressions = [all_in_any(WordQuery((term,)), self._places) for term in terms]
        lines = self._reader.session.rows(
            f"SELECT (SELECT count(*) FROM ({counted})) FROM json_each(?) c ORDER BY c.key",  # noqa: S608
            (*where.params, limit, orjson.dumps(expressions).decode()),
        )
        return [int(line[0]) for line in lines]

    def holding_all(self) -> tuple[list[Candidate], bool]:
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
    """How many entries of the index `all_in_any` asks for in each field, in their order."""
    return {field: len(entries(field, index, term)) for field, index in indexes.items()}
