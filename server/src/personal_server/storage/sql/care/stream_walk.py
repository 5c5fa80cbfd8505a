"""One walk along the records of a stream: whether each is what was written, and the words of all.

Bounds: words are compared by a sum, so that memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import orjson

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.record import JsonObject, canonical_key
from personal_server.storage.checksums import line_sum
from personal_server.storage.sql.care.faults import StreamCheck
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import ChangeRow
from personal_server.storage.sql.records.written_rows import prepare_one
from personal_server.storage.sql.source_tables import SourceTables, checked_data
from personal_server.storage.sql.statements import exists

# Longer words stand in the index by their beginning.
LONGEST_WORD_BYTES = 32_768


TOLD_EVERY = 20_000
WORD_SUM_MASK = (1 << 64) - 1


_IS_CHANGE = exists(ChangeRow, ChangeRow.source, ChangeRow.sequence, ChangeRow.key)


Progress = Callable[[int], None]
"""Called with how many records were read so far."""


def word_mark(word: bytes, row_id: int, position: int) -> int:
    """What one place of a word adds to the sum of all.

    Of the three as bytes: sums of hashes of tuples are often alike where two words change places.
    """
    return hash(b"%d %d %b" % (row_id, position, word))


class _Line(NamedTuple):
    """What is stored of a record, texts as bytes."""

    row_id: int
    key: bytes
    created: int
    created_at_ns: int
    changes: bytes | None
    word_counts: bytes | None
    checksum: int | None
    text: bytes | None


class StreamWalk:
    """Along the records of one stream."""

    def __init__(
        self,
        session: Session,
        source: SourceTables,
        primary_key: Sequence[str] | None,
        check: StreamCheck,
    ) -> None:
        self._session = session
        self._source = source
        self._primary_key = primary_key
        self._found = check
        self._words = 0

    def follow(self, progress: Progress) -> int:
        """Look at every record; the sum of the words that its index should hold."""
        number, check = self._source.tables, self._found
        key, changes, text = map(self._session.dialect.bytes_of, ("k", "fc", "data"))
        layout = self._source.layout
        # damaged texts are no texts: they are read as bytes
        values = "".join(
            f", {self._session.dialect.as_stored(column.name, column.kind)}"
            for column in (*layout.columns, *layout.folded)
        )
        lines = self._session.run(
            f"SELECT r.id, {key}, cs, ce, {changes}, wc, sum, {text}"  # noqa: S608
            f"{values} FROM r{number} r LEFT JOIN h{number} h ON h.id = r.id ORDER BY r.id"
        )
        for line in lines:
            check.records += 1
            self._look_at(_Line(*line[:8]), line[8:])
            if check.records % TOLD_EVERY == 0:
                progress(check.records)
        return self._words & WORD_SUM_MASK

    def _look_at(self, line: _Line, stored: Sequence[Value | bytes]) -> None:
        row_id, key_bytes, created, created_at_ns, changes, counts, stored_sum, text = line
        key = key_bytes.decode(errors="replace")
        dated = None if changes is None else changes.decode(errors="replace")
        own = line_sum(key, created, created_at_ns, dated)
        data = checked_data(self._source.layout, own, stored_sum, text)
        if data is None:
            self._found.damaged.add(key)
            return
        if not self._is_its_own(key, data):
            self._found.misnamed.add(key)
        if not self._is_in_feed(key, created, changes):
            self._found.unexplained.add(key)
        expected = prepare_one(key, data, created_at_ns, self._source.layout)
        values = [value.encode() if isinstance(value, str) else value for value in expected.values]
        if list(stored) != values or counts not in (None, expected.word_counts):
            self._found.values_differ = True
        if counts is not None:  # else it waits for its words (`rebuilds.adopt`)
            self._words += sum(
                word_mark(word.encode()[:LONGEST_WORD_BYTES], row_id, position)
                for position, word in enumerate(expected.words.split())
            )

    def _is_its_own(self, key: str, data: JsonObject) -> bool:
        if self._primary_key is None:
            return True
        try:
            return canonical_key([data.get(name) for name in self._primary_key]) == key
        except PersonalServerError:
            return False

    def _is_in_feed(self, key: str, created: int, changes: bytes | None) -> bool:
        try:
            dated: dict[str, tuple[int, int]] = orjson.loads(changes) if changes else {}
            numbers = {created, *(int(pair[0]) for pair in dated.values())}
        except (ValueError, TypeError, AttributeError, LookupError):
            return False
        source_number = self._source.source
        return all(
            self._session.first(_IS_CHANGE, (source_number, number, key)) for number in numbers
        )
