"""The marks by which records find their threads."""

from __future__ import annotations

from collections.abc import Iterable

from personal_server.domain.record import StoredRecord
from personal_server.storage.ports import ThreadMark
from personal_server.storage.sql.compiler import Compiler, Where
from personal_server.storage.sql.fixed_tables import ThreadMarkRow
from personal_server.storage.sql.source_tables import Reader, StorePart, find_source
from personal_server.storage.sql.statements import insert, select

_FIND = (
    select(
        ThreadMarkRow,
        ThreadMarkRow.source,
        ThreadMarkRow.mark,
        columns=(ThreadMarkRow.mark, ThreadMarkRow.at, ThreadMarkRow.thread),
    )
    + f" AND {ThreadMarkRow.at} BETWEEN ? AND ?"
)


class ThreadMarksPart(StorePart):
    """The thread marks of a subject."""

    def thread_marks(
        self, connection_id: str, stream: str, wanted: Iterable[tuple[str, int, int]]
    ) -> list[ThreadMark]:
        """Each is found by its place in the key."""
        with self._database.read() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return []
            return [
                ThreadMark(*line)
                for mark, since, until in wanted
                for line in session.rows(_FIND, (source.source, mark, since, until))
            ]

    def thread_records(
        self, connection_id: str, stream: str, thread: str, after: str, limit: int
    ) -> list[StoredRecord]:
        """By the index that `thread_id` has as a field that records are grouped by."""
        with self._database.read() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return []
            compiler = Compiler(source.reading, source.tables, session.dialect)
            where = compiler.holding("thread_id", thread) & Where(("r.k > ?",), (after,))
            rows = compiler.rows(where, f" ORDER BY r.k LIMIT {limit}")
            # damaged ones keep their thread until they are written again
            reader = Reader(session, self.subject_id, self._database.damage)
            found = (reader.whole(source, line) for line in reader.lines(source, rows))
            return [row for row in found if row is not None]

    def leave_thread_marks(
        self, connection_id: str, stream: str, marks: Iterable[ThreadMark]
    ) -> None:
        """One that is there already stays."""
        with self._database.write() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is not None:
                lines = [(source.source, each.mark, each.at, each.thread) for each in marks]
                session.many(session.dialect.ignoring(insert(ThreadMarkRow)), lines)
