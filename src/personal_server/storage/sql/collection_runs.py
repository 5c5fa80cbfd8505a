"""What collectors leave beside records: runs, bookmarks, receipts."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from personal_server.storage.ports import Rejection, Run, RunStatus, StreamState
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.source_tables import StorePart, require


class CollectorsPart(StorePart):
    """Collectors' things of a subject."""

    def record_run(self, connection_id: str, run: Run) -> None:
        """See the port."""
        succeeded = run.at_ns if run.status is RunStatus.SUCCEEDED else None
        with self._database.write() as session:
            require(session, self.subject_id, connection_id)
            session.run(
                "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET"
                " run_id = excluded.run_id, status = excluded.status, at = excluded.at,"
                " succeeded_at = nullif(max(ifnull(succeeded_at, -1 << 62),"
                " ifnull(excluded.succeeded_at, -1 << 62)), -1 << 62)",
                (
                    self.subject_id,
                    connection_id,
                    run.run_id,
                    run.status,
                    run.at_ns,
                    succeeded,
                ),
            )

    def state(self, connection_id: str) -> StreamState:
        """See the port."""
        with self._database.read() as session:
            return self._state(session, connection_id)

    def put_state(
        self, connection_id: str, changes: Mapping[str, object], now_ns: int
    ) -> StreamState:
        """See the port."""
        place = (self.subject_id, connection_id)
        kept = [(*place, s, orjson.dumps(v).decode()) for s, v in changes.items() if v is not None]
        with self._database.write() as session:
            require(session, *place)
            session.many(
                "DELETE FROM bookmarks WHERE subject_id = ? AND connection_id = ? AND stream = ?",
                [(*place, stream) for stream in changes],
            )
            session.many("INSERT INTO bookmarks VALUES (?, ?, ?, ?)", kept)
            session.run(
                "UPDATE connections SET state_updated_at = ?"
                " WHERE subject_id = ? AND connection_id = ?",
                (now_ns, *place),
            )
            return self._state(session, connection_id)

    def rejections(
        self, connection_id: str, limit: int, before: int | None
    ) -> tuple[tuple[int, Rejection], ...]:
        """See the port."""
        place = (self.subject_id, connection_id)
        with self._database.read() as session:
            require(session, *place)
            lines = session.rows(
                "SELECT number, receipt_id, stream, code, path, run_id, at FROM rejections"
                " WHERE subject_id = ?1 AND connection_id = ?2 AND (?3 IS NULL OR number < ?3)"
                " ORDER BY number DESC LIMIT ?4",
                (*place, before, limit),
            )
            return tuple((number, Rejection(*members)) for number, *members in lines)

    def _state(self, session: Session, connection_id: str) -> StreamState:
        place = (self.subject_id, connection_id)
        require(session, *place)
        lines = session.rows(
            "SELECT stream, value FROM bookmarks WHERE subject_id = ? AND connection_id = ?",
            place,
        )
        updated = session.value(
            "SELECT state_updated_at FROM connections WHERE subject_id = ? AND connection_id = ?",
            place,
        )
        return StreamState({stream: orjson.loads(value) for stream, value in lines}, updated)
