"""Writes of records: batches, deletes, and the forgetting of old history."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.declaration import Semantics
from personal_server.errors import ConnectionBusy, ConnectionNotFound, ConnectionNotWritable
from personal_server.storage.sql.layout import Layout, layout_of
from personal_server.storage.sqlite.blobs import forget_unreferenced, remove_unheld
from personal_server.storage.sqlite.changing import SourceWriter
from personal_server.storage.sqlite.database import Database
from personal_server.storage.sqlite.part import SqlitePart
from personal_server.storage.sqlite.preparing import Prepared, prepare
from personal_server.storage.sqlite.pruning import prune, wipe
from personal_server.storage.sqlite.session import Session
from personal_server.storage.sqlite.sources import (
    Source,
    add_source,
    all_sources,
    find_source,
    layout_now,
    make_tables,
    remove_tables,
)
from personal_server.storage.stored import Batch, Rejection, WriteOutcome

KEPT_REJECTIONS = 1_000


class SqliteRecords(SqlitePart):
    """The record writer of a subject."""

    def __init__(self, database: Database, subject_id: str, blob_directory: Path) -> None:
        super().__init__(database, subject_id, blob_directory)
        self._writing: dict[str, int] = {}
        self._writing_lock = threading.Lock()

    def commit(self, batch: Batch) -> tuple[WriteOutcome, ...]:
        """See the port."""
        with self._busy(batch.connection_id):
            with self._database.read() as session:
                connector_key = writable(session, self.subject_id, batch.connection_id)
                layout = self._layout(session, connector_key, batch)
            prepared = prepare(batch.writes, layout)
            with self._database.write() as session:
                writable(session, self.subject_id, batch.connection_id)
                outcomes, released = self._write(session, batch, prepared, layout)
        self._remove(released)
        return outcomes

    def delete_record(self, connection_id: str, stream: str, key: str, now_ns: int) -> bool:
        """See the port."""
        with self._database.erase() as session:
            source = self._existing(session, connection_id, stream)
            if source is None:
                return False
            writer = SourceWriter(session, source, now_ns)
            found = writer.delete(key, now_ns)
            writer.close()
            session.run("INSERT OR IGNORE INTO erased VALUES (?)", (source.source,))
            released = forget_unreferenced(session, self.subject_id, connection_id, writer.released)
        self._remove(released)
        return found

    def delete_stream(self, connection_id: str, stream: str, now_ns: int) -> int:
        """See the port."""
        with self._database.erase() as session:
            source = self._existing(session, connection_id, stream)
            if source is None:
                return 0
            writer = SourceWriter(session, source, now_ns)
            count = writer.delete_all(now_ns)
            writer.close()
            remove_tables(session, source)
            session.run(
                "UPDATE sources SET tables = ? WHERE source = ?",
                (make_tables(session, source.layout), source.source),
            )
            released = forget_unreferenced(session, self.subject_id, connection_id, writer.released)
        self._remove(released)
        return count

    def erase_connection(self, connection_id: str) -> int:
        """See the port."""
        with self._writing_lock:
            if self._writing.get(connection_id):
                raise ConnectionBusy("A write is under way on this connection. Repeat shortly.")
        with self._database.erase() as session:
            count, held = self._erase(session, connection_id)
        self._remove(held)
        return count

    def prune_history(self, before_ns: int) -> None:
        """See the port."""
        with self._database.write() as session:
            prune(session, all_sources(session, self.subject_id), before_ns)
        wipe(self._database, self.subject_id)

    def _layout(self, session: Session, connector_key: str, batch: Batch) -> Layout:
        source = find_source(session, self.subject_id, batch.connection_id, batch.stream.name)
        if source is not None:
            return source.layout
        declared = layout_now(session, self.subject_id, connector_key, batch.stream.name)
        return declared or layout_of(batch.stream)

    def _write(
        self, session: Session, batch: Batch, prepared: Sequence[Prepared], layout: Layout
    ) -> tuple[tuple[WriteOutcome, ...], set[str]]:
        place = (session, self.subject_id, batch.connection_id, batch.stream.name)
        source = find_source(*place) or add_source(*place, layout)
        if source.layout != layout:
            raise ConnectionBusy("The source was declared anew meanwhile. Repeat the call.")
        fixed = batch.stream.semantics is Semantics.APPEND_ONLY
        writer = SourceWriter(session, source, batch.now_ns)
        outcomes = tuple(_write_one(writer, each, fixed=fixed) for each in prepared)
        writer.close()
        if any(outcome is not WriteOutcome.CONFLICT for outcome in outcomes):
            self._wake(session, batch)
        self._keep(session, batch.connection_id, batch.receipts(outcomes))
        released = forget_unreferenced(
            session, self.subject_id, batch.connection_id, writer.released
        )
        return outcomes, released

    def _wake(self, session: Session, batch: Batch) -> None:
        """The first accepted line turns a draft connection active."""
        session.run(
            "UPDATE connections SET status = ?, updated_at = ?"
            " WHERE subject_id = ? AND connection_id = ? AND status = ?",
            (
                ConnectionStatus.ACTIVE,
                batch.now_ns,
                self.subject_id,
                batch.connection_id,
                ConnectionStatus.DRAFT,
            ),
        )

    def _keep(self, session: Session, connection_id: str, receipts: Sequence[Rejection]) -> None:
        place = (self.subject_id, connection_id)
        session.many(
            "INSERT INTO rejections (subject_id, connection_id, receipt_id, stream, code, path,"
            " run_id, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    *place,
                    each.receipt_id,
                    each.stream,
                    each.code,
                    each.path,
                    each.run_id,
                    each.at_ns,
                )
                for each in receipts
            ],
        )
        if receipts:
            session.run(
                "DELETE FROM rejections WHERE subject_id = ?1 AND connection_id = ?2"
                " AND number <= (SELECT number FROM rejections WHERE subject_id = ?1"
                " AND connection_id = ?2 ORDER BY number DESC LIMIT 1 OFFSET ?3)",
                (*place, KEPT_REJECTIONS),
            )

    def _existing(self, session: Session, connection_id: str, stream: str) -> Source | None:
        require(session, self.subject_id, connection_id)
        return find_source(session, self.subject_id, connection_id, stream)

    def _erase(self, session: Session, connection_id: str) -> tuple[int, set[str]]:
        require(session, self.subject_id, connection_id)
        place = (self.subject_id, connection_id)
        sources = all_sources(session, *place)
        for source in sources:
            remove_tables(session, source)
            for table in ("changes", "gone", "blob_references", "erased", "sources"):
                session.run(f"DELETE FROM {table} WHERE source = ?", (source.source,))  # noqa: S608
        held = session.rows(
            "DELETE FROM blob_uploads WHERE subject_id = ? AND connection_id = ? RETURNING blob_id",
            place,
        )
        for table in ("runs", "bookmarks", "rejections", "connections"):
            session.run(
                f"DELETE FROM {table} WHERE subject_id = ? AND connection_id = ?",  # noqa: S608
                place,
            )
        return sum(source.records for source in sources), {blob_id for (blob_id,) in held}

    def _remove(self, blob_ids: set[str]) -> None:
        remove_unheld(self._database, self._blob_directory, blob_ids)

    @contextmanager
    def _busy(self, connection_id: str) -> Generator[None, None, None]:
        with self._writing_lock:
            self._writing[connection_id] = self._writing.get(connection_id, 0) + 1
        try:
            yield
        finally:
            with self._writing_lock:
                self._writing[connection_id] -= 1


def require(session: Session, subject_id: str, connection_id: str) -> tuple[str, str]:
    """Connector key and status of a connection.  Raises ConnectionNotFound."""
    line = session.first(
        "SELECT connector_key, status FROM connections WHERE subject_id = ? AND connection_id = ?",
        (subject_id, connection_id),
    )
    if line is None:
        raise ConnectionNotFound("No such connection.", param="connection_id")
    return (line[0], line[1])


def writable(session: Session, subject_id: str, connection_id: str) -> str:
    """The connector key of a connection that takes records.

    Raises: ConnectionNotFound, ConnectionNotWritable when revoked.
    """
    connector_key, status = require(session, subject_id, connection_id)
    if status == ConnectionStatus.REVOKED:
        raise ConnectionNotWritable("This connection was revoked.")
    return connector_key


def _write_one(writer: SourceWriter, write: Prepared, *, fixed: bool) -> WriteOutcome:
    if write.text is not None:
        return writer.upsert(write, fixed=fixed)
    if fixed:
        return WriteOutcome.CONFLICT
    changed = writer.delete(write.key, write.emitted_at_ns)
    return WriteOutcome.CHANGED if changed else WriteOutcome.UNCHANGED
