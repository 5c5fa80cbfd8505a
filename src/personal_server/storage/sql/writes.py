"""One write transaction's changes to the records of one source.

Rule: every change takes the next number of the store; a record's line, text, words, references and
change are written together or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.declaration import Semantics
from personal_server.domain.record import FieldChange
from personal_server.domain.values import DAY_NANOSECONDS, ValueKind
from personal_server.errors import ConnectionBusy
from personal_server.storage.meaning import changed_fields
from personal_server.storage.ports import Batch, Rejection, WriteOutcome
from personal_server.storage.sql.blobs import forget_unreferenced, remove_unheld
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.layout import Layout, layout_of
from personal_server.storage.sql.source_tables import (
    Source,
    StorePart,
    add_source,
    all_sources,
    find_source,
    layout_now,
    make_tables,
    parse_changes,
    remove_tables,
    render_changes,
    require,
    writable,
)
from personal_server.storage.sql.written_rows import (
    Prepared,
    consent_instant,
    insert_line,
    insert_words,
    place_in_time,
    prepare,
)

FLUSHED_AT = 2_000


@dataclass(frozen=True, slots=True)
class Stored:
    """A record's line as it stands."""

    id: int
    created: FieldChange
    latest_ns: int
    changes: Mapping[str, FieldChange]

    @property
    def sequence(self) -> int:
        """The number of its last change."""
        return max((self.created.sequence, *(each.sequence for each in self.changes.values())))


class SourceWriter:
    """Writes to one source inside an open write transaction; `close` ends them."""

    def __init__(self, session: Session, source: Source, now_ns: int) -> None:
        self._session = session
        self._source = source
        self._now_ns = now_ns
        self._sequence = int(session.value("SELECT value FROM store WHERE name = 'sequence'"))
        self._records = source.records
        self._has_gone = session.first(
            "SELECT 1 FROM gone WHERE source = ? LIMIT 1", (source.source,)
        )
        self._texts: list[tuple[Value, ...]] = []
        self._words: list[tuple[Value, ...]] = []
        self._changes: list[tuple[Value, ...]] = []
        self._pending: set[str] = set()
        self.released: set[str] = set()
        self._compose(source)

    def _compose(self, source: Source) -> None:
        number = source.tables
        self._find = f"SELECT id, cs, ce, e, fc FROM r{number} WHERE k = ?"  # noqa: S608
        self._text = f"SELECT data FROM h{number} WHERE id = ?"  # noqa: S608
        self._add_text = f"INSERT INTO h{number} VALUES (?, ?)"  # noqa: S608
        self._remove = [f"DELETE FROM {table}{number} WHERE id = ?" for table in "rh"]  # noqa: S608
        self._forget = f"DELETE FROM f{number} WHERE rowid = ?"  # noqa: S608

    def upsert(self, write: Prepared, *, fixed: bool) -> WriteOutcome:
        """Replace a record; `fixed` records only come into being."""
        assert write.text is not None  # noqa: S101  # deletes have their own method
        stored = self._stored(write.key)
        if stored is None:
            self._create(write)
            return WriteOutcome.CHANGED
        old_text: str = self._session.value(self._text, (stored.id,))
        if old_text == write.text:
            return WriteOutcome.UNCHANGED
        old: dict[str, Any] = orjson.loads(old_text)
        changed = changed_fields(old, orjson.loads(write.text))
        if not changed:
            return WriteOutcome.UNCHANGED
        if fixed:
            return WriteOutcome.CONFLICT
        self._replace(write, stored, old, changed)
        return WriteOutcome.CHANGED

    def delete(self, key: str, emitted_at_ns: int) -> bool:
        """Remove a record; whether it was there."""
        stored = self._stored(key)
        if stored is None:
            return False
        self._flush()
        old: dict[str, Any] = orjson.loads(self._session.value(self._text, (stored.id,)))
        self._erase(stored.id)
        self._refer(key, {})
        self._records -= 1
        was_at = consent_instant(old, self._source.layout)
        self._record(key, emitted_at_ns, (1, was_at), (0, None), None, stored.sequence)
        self._gone(key)
        return True

    def _gone(self, key: str) -> None:
        self._session.run(
            "INSERT INTO gone VALUES (?, ?, ?)", (self._source.source, key, self._sequence)
        )
        self._has_gone = (1,)

    def delete_all(self, emitted_at_ns: int) -> int:
        """Note the deletion of every record; its tables are dropped by the caller."""
        self._flush()
        number, layout = self._source.tables, self._source.layout
        consent = layout.column(layout.consent)
        dated = "NULL" if consent is None else consent.name
        lines = self._session.run(
            f"SELECT k, cs, fc, {dated} FROM r{number} ORDER BY k"  # noqa: S608
        )
        is_day = consent is not None and consent.kind is ValueKind.DATE
        for key, created, changes, value in lines:
            numbers = (each.sequence for each in parse_changes(changes).values())
            was_at = value * DAY_NANOSECONDS if is_day and value is not None else value
            self._refer(key, {})
            previous = max((created, *numbers))
            self._record(key, emitted_at_ns, (1, was_at), (0, None), None, previous)
            self._gone(key)
            if len(self._changes) >= FLUSHED_AT:
                self._flush()
        count, self._records = self._records, 0
        return count

    def close(self) -> None:
        """Write what is pending, the counters, and drop blobs nobody refers to any more."""
        self._flush()
        self._session.run("UPDATE store SET value = ? WHERE name = 'sequence'", (self._sequence,))
        self._session.run(
            "UPDATE sources SET records = ? WHERE source = ?",
            (self._records, self._source.source),
        )

    def _stored(self, key: str) -> Stored | None:
        if key in self._pending or len(self._changes) >= FLUSHED_AT:
            self._flush()
        line = self._session.first(self._find, (key,))
        if line is None:
            return None
        created = FieldChange(line[1], line[2])
        return Stored(line[0], created, line[3], parse_changes(line[4]))

    def _create(self, write: Prepared) -> None:
        previous = self._come_back(write.key)
        self._record(
            write.key, write.emitted_at_ns, (0, None), (1, write.consent_at), None, previous
        )
        created = FieldChange(self._sequence, write.emitted_at_ns)
        self._insert(write, self._place(write, created), created, write.emitted_at_ns, {})
        self._refer(write.key, write.blobs)
        self._records += 1

    def _replace(
        self, write: Prepared, stored: Stored, old: Mapping[str, Any], changed: frozenset[str]
    ) -> None:
        layout = self._source.layout
        self._flush()
        self._erase(stored.id)
        was_at = consent_instant(old, layout)
        self._record(
            write.key,
            write.emitted_at_ns,
            (1, was_at),
            (1, write.consent_at),
            orjson.dumps(sorted(changed)).decode(),
            stored.sequence,
        )
        now = FieldChange(self._sequence, write.emitted_at_ns)
        changes = {**stored.changes, **dict.fromkeys(changed, now)}
        moved = layout.event in changed
        at = self._place(write, stored.created) if moved else stored.id
        latest = max(stored.latest_ns, write.emitted_at_ns)
        self._insert(write, at, stored.created, latest, changes)
        self._refer(write.key, write.blobs)

    def _place(self, write: Prepared, created: FieldChange) -> int:
        return place_in_time(write.event_ns, created.emitted_at_ns, self._source.layout)

    def _insert(
        self,
        write: Prepared,
        at: int,
        created: FieldChange,
        latest_ns: int,
        changes: Mapping[str, FieldChange],
    ) -> None:
        rest = (
            write.key,
            created.sequence,
            created.emitted_at_ns,
            latest_ns,
            *write.values,
            render_changes(changes),
        )
        chosen = insert_line(self._session, self._source.tables, self._source.layout, at, rest)
        self._texts.append((chosen, write.text))
        if write.words is not None:
            self._words.append((chosen, *write.words))

    def _erase(self, row_id: int) -> None:
        for statement in self._remove:
            self._session.run(statement, (row_id,))
        if self._source.layout.lexical:
            self._session.run(self._forget, (row_id,))

    def _record(
        self,
        key: str,
        emitted_at_ns: int,
        before: tuple[int, Value],
        after: tuple[int, Value],
        fields: str | None,
        previous: int | None,
    ) -> None:
        self._sequence += 1
        self._pending.add(key)
        source = self._source.source
        self._changes.append(
            (
                source,
                self._sequence,
                key,
                *before,
                *after,
                fields,
                emitted_at_ns,
                self._now_ns,
                previous,
            )
        )
        if previous is not None:
            self._session.run(
                "UPDATE changes SET next = ? WHERE source = ? AND sequence = ?",
                (self._sequence, source, previous),
            )

    def _come_back(self, key: str) -> int | None:
        """The number of the deletion that a new record follows."""
        if self._has_gone is None:
            return None
        return self._session.value(
            "DELETE FROM gone WHERE source = ? AND key = ? RETURNING sequence",
            (self._source.source, key),
        )

    def _refer(self, key: str, blobs: Mapping[str, str] | None) -> None:
        """Replace the blob references of a record."""
        if not self._source.layout.blobs:
            return
        source = self._source.source
        old = self._session.rows(
            "DELETE FROM blob_references WHERE source = ? AND key = ? RETURNING blob_id",
            (source, key),
        )
        kept = blobs or {}
        self.released |= {blob_id for (blob_id,) in old} - set(kept.values())
        lines = [(source, key, field, blob_id) for field, blob_id in kept.items()]
        self._session.many("INSERT INTO blob_references VALUES (?, ?, ?, ?)", lines)

    def _flush(self) -> None:
        """Texts, words in the order of their ids, changes."""
        self._session.many(self._add_text, self._texts)
        insert_words(self._session, self._source.tables, self._source.layout, self._words)
        self._session.many(
            "INSERT INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)", self._changes
        )
        for pending in (self._texts, self._changes, self._pending):
            pending.clear()


# Forgetting old history.
#
# Rule: of the changes before an instant only those stay that date a living record (its creation and
# the last change of each field), so that a feed from the beginning is always complete.  Words of
# erased records, which no search finds any more, leave the file too.


# Pages of a word index written per step of a merge: some tens of milliseconds.
PAGES_MERGED = 500


def prune(session: Session, sources: Sequence[Source], before_ns: int) -> None:
    """Forget what was written before, and remember up to which number."""
    reached = 0
    for source in sources:
        last = session.value(
            "SELECT max(sequence) FROM changes WHERE source = ? AND written_at < ?",
            (source.source, before_ns),
        )
        if last is not None:
            reached = max(reached, int(last))
            _prune(session, source, int(last))
    session.run("UPDATE store SET value = max(value, ?) WHERE name = 'retained_from'", (reached,))


def _prune(session: Session, source: Source, last: int) -> None:
    number = source.tables
    session.run(
        "DELETE FROM changes WHERE source = ? AND sequence <= ? AND NOT EXISTS ("  # noqa: S608
        f" SELECT 1 FROM r{number} r WHERE r.k = changes.key AND (r.cs = changes.sequence OR"
        " EXISTS (SELECT 1 FROM json_each(r.fc) f"
        " WHERE json_extract(f.value, '$[0]') = changes.sequence)))",
        (source.source, last),
    )
    session.run("DELETE FROM gone WHERE source = ? AND sequence <= ?", (source.source, last))


def wipe(database: Database, subject_id: str) -> None:
    """Merge the word indexes of erased records, a little per transaction."""
    with database.read() as session:
        waiting = [
            source
            for source in all_sources(session, subject_id)
            if session.first("SELECT 1 FROM erased WHERE source = ?", (source.source,))
        ]
    for source in waiting:
        pages = -PAGES_MERGED
        while source.layout.lexical and _merge(database, source, pages):
            pages = PAGES_MERGED
        with database.write() as session:
            session.run("DELETE FROM erased WHERE source = ?", (source.source,))


def _merge(database: Database, source: Source, pages: int) -> bool:
    """One step of a merge; a negative number begins to merge everything.  Whether it did work."""
    index = f"f{source.tables}"
    with database.erase() as session:
        if session.first("SELECT 1 FROM sqlite_schema WHERE name = ?", (index,)) is None:
            return False
        before = session.total_changed
        session.run(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))  # noqa: S608
        return session.total_changed - before >= 2


# Writes of records: batches, deletes, and the forgetting of old history.


KEPT_REJECTIONS = 1_000


class RecordsPart(StorePart):
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


def _write_one(writer: SourceWriter, write: Prepared, *, fixed: bool) -> WriteOutcome:
    if write.text is not None:
        return writer.upsert(write, fixed=fixed)
    if fixed:
        return WriteOutcome.CONFLICT
    changed = writer.delete(write.key, write.emitted_at_ns)
    return WriteOutcome.CHANGED if changed else WriteOutcome.UNCHANGED
