"""What collectors leave beside records (runs, bookmarks, receipts, marks of threads), and stored
records as they ask for them, to write them again with something that they lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import orjson

from pdpp_kernel.record import StoredRecord
from personal_server.domain.stored import (
    CollectionRun,
    Rejection,
    RunStatus,
    StreamState,
    ThreadMark,
)
from personal_server.storage.sql.compiler import Compiler, Where
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import (
    BookmarkRow,
    ConnectionRow,
    RejectionRow,
    RunRow,
    ThreadMarkRow,
)
from personal_server.storage.sql.source_tables import Reader, find_source
from personal_server.storage.sql.statements import (
    delete,
    ignoring,
    insert,
    select,
    update,
    values_of,
)
from personal_server.storage.sql.store_part import StorePart, require
from personal_server.storage.tables import ColumnKind

# the end of the last success stays when a later run fails, and when words arrive out of order
_SUCCEEDED, _NEWER = f"{RunRow.table}.{RunRow.succeeded_at}", f"excluded.{RunRow.succeeded_at}"
_NOTE_RUN = (
    f"{insert(RunRow)} ON CONFLICT ({RunRow.subject_id}, {RunRow.connection_id}) DO UPDATE SET"
    f" {RunRow.run_id} = excluded.{RunRow.run_id}, {RunRow.status} = excluded.{RunRow.status},"
    f" {RunRow.at} = excluded.{RunRow.at},"
    f" {RunRow.succeeded_at} = CASE WHEN {_NEWER} IS NULL OR {_SUCCEEDED} > {_NEWER}"
    f" THEN {_SUCCEEDED} ELSE {_NEWER} END"
)
_BOOKMARKS = select(
    BookmarkRow,
    BookmarkRow.subject_id,
    BookmarkRow.connection_id,
    columns=(BookmarkRow.stream, BookmarkRow.value),
)
_FORGET_BOOKMARK = delete(
    BookmarkRow, BookmarkRow.subject_id, BookmarkRow.connection_id, BookmarkRow.stream
)
_STATE_UPDATED = select(
    ConnectionRow,
    ConnectionRow.subject_id,
    ConnectionRow.connection_id,
    columns=(ConnectionRow.state_updated_at,),
)
_UPDATE_STATE = update(
    ConnectionRow,
    [ConnectionRow.state_updated_at],
    ConnectionRow.subject_id,
    ConnectionRow.connection_id,
)
_REJECTIONS = (
    f"SELECT {RejectionRow.number}, {RejectionRow.receipt_id}, {RejectionRow.stream},"  # noqa: S608
    f" {RejectionRow.code}, {RejectionRow.path}, {RejectionRow.run_id}, {RejectionRow.at}"
    f" FROM {RejectionRow.table} WHERE {RejectionRow.subject_id} = ?1"
    f" AND {RejectionRow.connection_id} = ?2 AND ({RejectionRow.number} < ?3 OR ?3 IS NULL)"
    f" ORDER BY {RejectionRow.number} DESC LIMIT ?4"
)

_FIND_MARKS = (
    select(
        ThreadMarkRow,
        ThreadMarkRow.source,
        ThreadMarkRow.mark,
        columns=(ThreadMarkRow.mark, ThreadMarkRow.at, ThreadMarkRow.thread),
    )
    + f" AND {ThreadMarkRow.at} BETWEEN ? AND ?"
)


class CollectorsPart(StorePart):
    """Collectors' things of a subject."""

    def record_run(self, connection_id: str, run: CollectionRun) -> None:
        """The end of the last success stays, whatever the newer word is."""
        row = RunRow(
            subject_id=self.subject_id,
            connection_id=connection_id,
            run_id=run.run_id,
            status=run.status,
            at=run.at_ns,
            succeeded_at=run.at_ns if run.status is RunStatus.SUCCEEDED else None,
        )
        with self._database.write() as session:
            require(session, self.subject_id, connection_id)
            session.run(_NOTE_RUN, values_of(row))

    def state(self, connection_id: str) -> StreamState:
        """All bookmarks, and when the newest was put."""
        with self._database.read() as session:
            return self._state(session, connection_id)

    def put_state(
        self, connection_id: str, changes: Mapping[str, object], now_ns: int
    ) -> StreamState:
        """Forget every named stream, then keep what has a value."""
        key = (self.subject_id, connection_id)
        rows = [(*key, s, orjson.dumps(v).decode()) for s, v in changes.items() if v is not None]
        with self._database.write() as session:
            require(session, *key)
            session.many(_FORGET_BOOKMARK, [(*key, stream) for stream in changes])
            session.many(insert(BookmarkRow), rows)
            session.run(_UPDATE_STATE, (now_ns, *key))
            return self._state(session, connection_id)

    def rejections(
        self, connection_id: str, limit: int, before: int | None
    ) -> tuple[tuple[int, Rejection], ...]:
        """Receipts by their number, the newest first."""
        row_key = (self.subject_id, connection_id)
        with self._database.read() as session:
            require(session, *row_key)
            lines = session.rows(_REJECTIONS, (*row_key, before, limit))
            return tuple((number, Rejection(*members)) for number, *members in lines)

    def thread_marks(
        self, connection_id: str, stream: str, marks: Iterable[tuple[str, int, int]]
    ) -> list[ThreadMark]:
        """Each is found by its place in the key."""
        with self._database.read() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return []
            return [
                ThreadMark(*line)
                for mark, since, until in marks
                for line in session.rows(_FIND_MARKS, (source.source, mark, since, until))
            ]

    def leave_thread_marks(
        self, connection_id: str, stream: str, marks: Iterable[ThreadMark]
    ) -> None:
        """One that is there already stays."""
        with self._database.write() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is not None:
                lines = [(source.source, mark.mark, mark.at, mark.thread) for mark in marks]
                session.many(ignoring(insert(ThreadMarkRow)), lines)

    def records_holding(
        self, connection_id: str, stream: str, field: str, value: str, after: str, limit: int
    ) -> list[StoredRecord]:
        """By the index that a field has which records are grouped by."""
        behind = Where(("r.k > ?",), (after,))
        tail = f" ORDER BY r.k LIMIT {limit}"
        row_key = (connection_id, stream)
        return self._found(*row_key, lambda at: at.holding(field, value) & behind, tail)

    def records_named(
        self, connection_id: str, stream: str, keys: Sequence[str]
    ) -> list[StoredRecord]:
        """By the index of keys."""
        listed = orjson.dumps(list(keys)).decode()

        def named(compiler: Compiler) -> Where:
            return Where((f"r.k IN {compiler.dialect.values('?', ColumnKind.TEXT)}",), (listed,))

        return self._found(connection_id, stream, named)

    def _found(
        self,
        connection_id: str,
        stream: str,
        where: Callable[[Compiler], Where],
        tail: str = "",
    ) -> list[StoredRecord]:
        with self._database.read() as session:
            source = find_source(session, self.subject_id, connection_id, stream)
            if source is None:
                return []
            compiler = Compiler(source.reading, source.tables, session.dialect)
            rows = compiler.rows(where(compiler), tail)
            # damaged ones stay as they are until they are written again
            reader = Reader(session, self.subject_id, self._database.damage)
            rows_found = (reader.whole(source, line) for line in reader.lines(source, rows))
            return [row for row in rows_found if row is not None]

    def _state(self, session: Session, connection_id: str) -> StreamState:
        row_key = (self.subject_id, connection_id)
        require(session, *row_key)
        lines = session.rows(_BOOKMARKS, row_key)
        updated = session.value(_STATE_UPDATED, row_key)
        return StreamState({stream: orjson.loads(value) for stream, value in lines}, updated)
