"""The marks by which records find their threads."""

from __future__ import annotations

from collections.abc import Iterable

from personal_server.storage.ports import ThreadMark
from personal_server.storage.sql.fixed_tables import ThreadMarkRow
from personal_server.storage.sql.source_tables import StorePart, find_source
from personal_server.storage.sql.statements import ignoring, insert, select

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

    def leave_thread_marks(
        self, connection_id: str, stream: str, marks: Iterable[ThreadMark]
    ) -> None:
        """One that is there already stays."""
        with self._database.write() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is not None:
                lines = [(source.source, each.mark, each.at, each.thread) for each in marks]
                session.many(ignoring(insert(ThreadMarkRow)), lines)
