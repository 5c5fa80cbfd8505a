"""Writes of records: batches, deletes, and the forgetting of old history.

Rule: every change takes the next number of the store; a record's line, text, words, references and
change are written together or not at all.  Of the changes before an instant only those stay that
date a living record (its creation and the last change of each field), so that a feed from the
beginning is always complete.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
import orjson

from pdpp_kernel.declaration import Semantics
from pdpp_kernel.errors import ConnectionBusy
from pdpp_kernel.record import FieldChange, JsonObject
from pdpp_kernel.values import DAY_NANOSECONDS, ValueKind, bound
from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.stored import Batch, Rejection, WriteOutcome
from personal_server.storage.authorization_rows import CanaryRow
from personal_server.storage.checksums import is_line_of, line_sum, record_sum
from personal_server.storage.record_changes import changed_fields
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import (
    BlobReferenceRow,
    BlobUploadRow,
    BookmarkRow,
    ChangeRow,
    ConnectionRow,
    EraRow,
    ErasedRow,
    ErasureRow,
    GoneRow,
    MentionRow,
    RejectionRow,
    RunRow,
    SourceRow,
    StoreRow,
    ThreadMarkRow,
)
from personal_server.storage.sql.layout import Layout, render_held
from personal_server.storage.sql.logs.disclosures import forget_details_of
from personal_server.storage.sql.record_ids import free_places, place_in_time
from personal_server.storage.sql.records.blobs import (
    forget_unreferenced,
    remove_unheld,
)
from personal_server.storage.sql.records.feed_ledgers import forget_ledgers_of
from personal_server.storage.sql.records.passages import (
    embedded_fields,
    forget_all_passages,
    forget_passages,
)
from personal_server.storage.sql.records.persons import forget_lost_corrections
from personal_server.storage.sql.records.pruning import FIND_STORE_VALUE, STORE_VALUE, prune, wipe
from personal_server.storage.sql.records.record_copies import drop_copies, erase_copies
from personal_server.storage.sql.records.summaries import uncount_lines
from personal_server.storage.sql.records.swept_blobs import unheld_blobs
from personal_server.storage.sql.records.written_rows import (
    FLUSHED_AT,
    FLUSHED_BYTES,
    NewLines,
    Prepared,
    limiting_values,
    prepare,
    prepare_again,
    put_mentions,
)
from personal_server.storage.sql.source_tables import (
    SourceTables,
    add_source,
    all_sources,
    checked_text,
    find_source,
    layout_now,
    make_tables,
    parse_changes,
    remove_tables,
    render_changes,
)
from personal_server.storage.sql.statements import (
    delete,
    exists,
    ignoring,
    insert,
    replacing,
    select,
    update,
)
from personal_server.storage.sql.store_part import StorePart, require, writable
from personal_server.storage.tables import ColumnKind

KEPT_REJECTIONS = 1_000

_LAST_SEQUENCE = f"{FIND_STORE_VALUE} 'sequence'"
_SET_SEQUENCE = f"{STORE_VALUE} ? WHERE {StoreRow.name} = 'sequence'"
_KNOWN_ERA = exists(EraRow, EraRow.era)
_SET_RECORDS = update(SourceRow, [SourceRow.records], SourceRow.source)
_SET_TABLES = update(
    SourceRow,
    [SourceRow.tables, SourceRow.layout, SourceRow.unindexed_below],
    SourceRow.source,
)
_HAS_GONE = f"{exists(GoneRow, GoneRow.source)} LIMIT 1"
_FIND_GONE = (
    select(GoneRow, GoneRow.source, columns=(GoneRow.key, GoneRow.sequence))
    + f" AND {GoneRow.key} IN"
)
_FORGET_COME_BACK = f"{delete(GoneRow, GoneRow.source)} AND {GoneRow.key} IN"
_SET_NEXT = update(ChangeRow, [ChangeRow.next], ChangeRow.source, ChangeRow.sequence)
_FORGET_REFERENCES = (
    f"{delete(BlobReferenceRow, BlobReferenceRow.source)} AND {BlobReferenceRow.key} IN"
)
_REFERRED = f"RETURNING {BlobReferenceRow.key}, {BlobReferenceRow.blob_id}"
_FORGET_UPLOADS = (
    f"{delete(BlobUploadRow, BlobUploadRow.subject_id, BlobUploadRow.connection_id)}"
    f" RETURNING {BlobUploadRow.blob_id}"
)
_WAKE = update(
    ConnectionRow,
    [ConnectionRow.status, ConnectionRow.updated_at],
    ConnectionRow.subject_id,
    ConnectionRow.connection_id,
    ConnectionRow.status,
)
_REJECTED = f"WHERE {RejectionRow.subject_id} = ?1 AND {RejectionRow.connection_id} = ?2"
_FORGET_REJECTIONS = (
    f"DELETE FROM {RejectionRow.table} {_REJECTED} AND {RejectionRow.number} <="  # noqa: S608
    f" (SELECT {RejectionRow.number} FROM {RejectionRow.table} {_REJECTED}"
    f" ORDER BY {RejectionRow.number} DESC LIMIT 1 OFFSET ?3)"
)
_FORGET_MENTIONS = delete(MentionRow, MentionRow.source)
_FORGET_MARKS = delete(ThreadMarkRow, ThreadMarkRow.source)
_ERASE_SOURCE = (
    delete(ChangeRow, ChangeRow.source),
    delete(GoneRow, GoneRow.source),
    delete(BlobReferenceRow, BlobReferenceRow.source),
    _FORGET_MENTIONS,
    _FORGET_MARKS,
    delete(ErasedRow, ErasedRow.source),
    delete(SourceRow, SourceRow.source),
)
_ERASE_CONNECTION = (
    delete(RunRow, RunRow.subject_id, RunRow.connection_id),
    delete(BookmarkRow, BookmarkRow.subject_id, BookmarkRow.connection_id),
    delete(RejectionRow, RejectionRow.subject_id, RejectionRow.connection_id),
    delete(ConnectionRow, ConnectionRow.subject_id, ConnectionRow.connection_id),
)


class RecordsPart(StorePart):
    """The record writer of a subject."""

    def __init__(
        self,
        database: Database,
        subject_id: str,
        blob_directory: Path,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        super().__init__(database, subject_id, blob_directory)
        self._random_bytes = random_bytes
        self._era = random_bytes(8).hex()
        self._writing: dict[str, int] = {}
        self._writing_lock = threading.Lock()
        self._has_looked_for_bytes = False

    def commit(self, batch: Batch) -> tuple[WriteOutcome, ...]:
        """Everything that needs no lock is done before the transaction begins."""
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
        """Its content is overwritten; its words go with the next `finish_erasures`."""
        with self._database.erase() as session:
            source = self._existing(session, connection_id, stream)
            if source is None:
                return False
            writer = SourceWriter(session, source, now_ns, self._era)
            is_changed = writer.write([Prepared(key, now_ns)]) == [WriteOutcome.CHANGED]
            writer.close()
            erase_copies(session, source.source, key)
            session.run(ignoring(insert(ErasedRow)), (source.source,))
            if is_changed:
                self._note_erasure(session, now_ns, connection_id, stream, key)
                forget_lost_corrections(session, self.subject_id)
            released = forget_unreferenced(session, self.subject_id, connection_id, writer.released)
        self._remove(released)
        return is_changed

    def delete_stream(self, connection_id: str, stream: str, now_ns: int) -> int:
        """The tables of the source are made anew."""
        with self._database.erase() as session:
            source = self._existing(session, connection_id, stream)
            if source is None:
                return 0
            writer = SourceWriter(session, source, now_ns, self._era)
            count = writer.delete_all(now_ns)
            writer.close()
            remove_tables(session, source)
            forget_all_passages(session, source.tables)
            drop_copies(session, source.source)
            for statement in (_FORGET_MENTIONS, _FORGET_MARKS):
                session.run(statement, (source.source,))
            forget_lost_corrections(session, self.subject_id)
            layout = source.wanted or source.layout
            tables_made = make_tables(session, layout)
            session.run(_SET_TABLES, (tables_made, layout.render(), None, source.source))
            released = forget_unreferenced(session, self.subject_id, connection_id, writer.released)
            self._note_erasure(session, now_ns, connection_id, stream)
        self._remove(released)
        return count

    def erase_connection(self, connection_id: str, now_ns: int) -> int:
        """Blobs leave the disk once no other connection holds them."""
        with self._writing_lock:
            if self._writing.get(connection_id):
                raise ConnectionBusy(
                    "Another program is writing to this account. Repeat the call shortly."
                )
        with self._database.erase() as session:
            count, uploads = self._erase(session, connection_id)
            self._note_erasure(session, now_ns, connection_id)
        self._remove(uploads)
        return count

    def prune_history(self, before_ns: int) -> None:
        """Of every source, in one transaction."""
        with self._database.write() as session:
            prune(session, all_sources(session, self.subject_id), before_ns)

    def finish_erasures(self) -> None:
        """Only a process that was killed leaves bytes, so that they are looked for once."""
        wipe(self._database, self.subject_id)
        if not self._has_looked_for_bytes:
            remove_unheld(
                self._database,
                self._blob_directory,
                unheld_blobs(self._database, self._blob_directory),
            )
            self._has_looked_for_bytes = True
        self._database.empty_journal()

    def _layout(self, session: Session, connector_key: str, batch: Batch) -> Layout:
        source = find_source(session, self.subject_id, batch.connection_id, batch.stream.name)
        if source is not None:
            return source.layout
        declared = layout_now(session, self.subject_id, connector_key, batch.stream.name)
        return declared or layout_of(batch.stream)

    def _write(
        self, session: Session, batch: Batch, prepared: Sequence[Prepared], layout: Layout
    ) -> tuple[tuple[WriteOutcome, ...], set[str]]:
        target = (session, self.subject_id, batch.connection_id, batch.stream.name)
        source = find_source(*target) or add_source(*target, layout)
        if source.layout != layout:
            prepared = prepare_again(prepared, source.layout)
        fixed = batch.stream.semantics is Semantics.APPEND_ONLY
        writer = SourceWriter(session, source, batch.now_ns, self._era)
        outcomes = tuple(writer.write(prepared, fixed=fixed))
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
            _WAKE,
            (
                ConnectionStatus.ACTIVE,
                batch.now_ns,
                self.subject_id,
                batch.connection_id,
                ConnectionStatus.DRAFT,
            ),
        )

    def _keep(self, session: Session, connection_id: str, receipts: Sequence[Rejection]) -> None:
        row_key = (self.subject_id, connection_id)
        session.many(
            insert(RejectionRow),
            [
                (
                    *row_key,
                    receipt.receipt_id,
                    receipt.stream,
                    receipt.code,
                    receipt.path,
                    receipt.run_id,
                    receipt.at_ns,
                )
                for receipt in receipts
            ],
        )
        if receipts:
            session.run(_FORGET_REJECTIONS, (*row_key, KEPT_REJECTIONS))

    def _existing(self, session: Session, connection_id: str, stream: str) -> SourceTables | None:
        require(session, self.subject_id, connection_id)
        return find_source(session, self.subject_id, connection_id, stream)

    def _erase(self, session: Session, connection_id: str) -> tuple[int, set[str]]:
        require(session, self.subject_id, connection_id)
        row_key = (self.subject_id, connection_id)
        sources = all_sources(session, *row_key)
        for source in sources:
            remove_tables(session, source)
            forget_all_passages(session, source.tables)
            drop_copies(session, source.source)
            for statement in _ERASE_SOURCE:
                session.run(statement, (source.source,))
        uploads = session.rows(_FORGET_UPLOADS, row_key)
        for statement in _ERASE_CONNECTION:
            session.run(statement, row_key)
        forget_lost_corrections(session, self.subject_id)
        forget_ledgers_of(session, *row_key)
        return sum(source.records for source in sources), {blob_id for (blob_id,) in uploads}

    def _note_erasure(
        self,
        session: Session,
        now_ns: int,
        connection_id: str,
        stream: str | None = None,
        key: str | None = None,
    ) -> None:
        """What a backup of before still holds, without the key of a record; and nothing beside the
        log tells of it any more.
        """
        forget_details_of(session, self.subject_id, connection_id, stream, key)
        row_key = (connection_id, stream, key)
        columns = (CanaryRow.connection_id, CanaryRow.stream, CanaryRow.key)
        pairs = [(c, value) for c, value in zip(columns, row_key, strict=True) if value is not None]
        erase = delete(CanaryRow, *(column for column, _ in pairs))
        session.run(erase, (self.subject_id, *(value for _, value in pairs)))
        digest = None if key is None else key_digest(self.subject_id, key)
        erasure_id = f"ers_{self._random_bytes(9).hex()}"
        session.run(
            insert(ErasureRow),
            (self.subject_id, erasure_id, connection_id, stream, digest, now_ns),
        )

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


def key_digest(subject_id: str, key: str) -> str:
    """What tells an erased record without its key."""
    return hashlib.sha256(f"{subject_id}\0{key}".encode()).hexdigest()


class Stored(msgspec.Struct, frozen=True):
    """A record as it stands.

    Shapes: `text` is what was written, `None` where that is damaged; `was_at` is the consent-time
        instant; `is_line_sound`: its dates can be relied on; `held` is what `was_held` is made
        of: the values of `Layout.limiting`, or the text while that is laid out anew.
    """

    id: int
    created: FieldChange
    latest_ns: int
    changes: Mapping[str, FieldChange]
    was_at: Value
    is_line_sound: bool
    held: Sequence[Value]
    text: bytes | None

    @property
    def sequence(self) -> int | None:
        """The number of its last change, if that is known."""
        if not self.is_line_sound:
            return None
        return max((self.created.sequence, *(change.sequence for change in self.changes.values())))


class SourceWriter:
    """Writes to one source inside an open write transaction; `close` ends them.

    Records are looked up and written by sets, in which no key occurs twice: how many messages the
    database gets does not grow with the records of a set.  `era` is that of the process that
    writes.
    """

    def __init__(self, session: Session, source: SourceTables, now_ns: int, era: str) -> None:
        self._session = session
        self._source = source
        self._now_ns = now_ns
        self._era = era
        self._began_at = self._sequence = int(session.value(_LAST_SEQUENCE))
        self._records = source.records
        self._has_gone = session.first(_HAS_GONE, (source.source,)) is not None
        self._embedded = embedded_fields(session, source.tables)
        self.released: set[str] = set()
        self._pending = _Pending()
        self._compose(source)

    def _compose(self, source: SourceTables) -> None:
        number, dialect = source.tables, self._session.dialect
        consent = source.layout.column(source.layout.consent)
        self._dated = "NULL" if consent is None else consent.name
        self._is_day = consent is not None and consent.kind is ValueKind.DATE
        # damaged texts are no texts: they are read as bytes
        whole = dialect.bytes_of
        self._changed, self._key = whole("fc"), whole("k")
        limiting = source.layout.limiting.values()
        texts = [whole(f"r.{c.name}") if c.kind is ValueKind.STRING else c.name for c in limiting]
        if source.wanted is not None:  # what limits are compared with may have no column yet
            texts = [whole("h.data")]
        self._held = "".join(f", {text}" for text in texts)
        self._find = (
            f"SELECT asked.value, r.id, cs, ce, e, {self._changed}, {self._dated}, sum,"  # noqa: S608
            f" {whole('data')}{self._held}"
            f" FROM {dialect.listed('?')} {dialect.ordered_join} r{number} r"
            f" ON r.k = asked.value LEFT JOIN h{number} h ON h.id = r.id"
        )
        self._among = dialect.values("?", ColumnKind.TEXT)
        tables = {"r": "id", "h": "id"} | ({"w": "rowid"} if source.layout.lexical else {})
        ids = dialect.values("?", ColumnKind.INTEGER)
        self._remove = [f"DELETE FROM {t}{number} WHERE {n} IN {ids}" for t, n in tables.items()]  # noqa: S608

    def write(self, writes: Iterable[Prepared], *, fixed: bool = False) -> list[WriteOutcome]:
        """Replace records, or remove those without a text; `fixed` ones only come into being."""
        outcomes: list[WriteOutcome] = []
        for part in _sets(writes):
            stored = self._stored([write.key for write in part])
            self._come_back(write.key for write in part if write.key not in stored)
            outcomes += [self._write(write, stored.get(write.key), fixed=fixed) for write in part]
            self._flush()
        return outcomes

    def _write(self, write: Prepared, stored: Stored | None, *, fixed: bool) -> WriteOutcome:
        if write.text is None:
            return WriteOutcome.CONFLICT if fixed else self._delete(write, stored)
        if stored is None:
            self._create(write)
        elif stored.text is None:
            self._heal(write, stored)
        else:
            changed = _changed_fields(stored.text, write.text.encode())
            if fixed and changed:
                return WriteOutcome.CONFLICT
            if not changed:
                return WriteOutcome.UNCHANGED
            self._replace(write, stored, changed)
        return WriteOutcome.CHANGED

    def delete_all(self, emitted_at_ns: int) -> int:
        """Note the deletion of every record; its tables are dropped by the caller."""
        lines = self._session.run(
            f"SELECT {self._key}, cs, {self._changed},"  # noqa: S608
            f" {self._dated}{self._held} FROM r{self._source.tables} r"
            f" LEFT JOIN h{self._source.tables} h ON h.id = r.id ORDER BY k"
        )
        while some := list(itertools.islice(lines, FLUSHED_AT)):
            for key_bytes, created, changes, value, *held in some:
                key = key_bytes.decode(errors="replace")
                numbers = (change.sequence for change in parse_changes(changes).values())
                was, previous = (1, self._was_at(value)), max((created, *numbers))
                self._record(key, emitted_at_ns, was, (0, None), None, previous, held)
                self._pending.gone.append((self._source.source, key, self._sequence))
                self._pending.references[key] = {}
            self._flush()
        count, self._records = self._records, 0
        return count

    def close(self) -> None:
        """Write the counters of the source, after its last record."""
        if self._sequence != self._began_at and not self._session.first(_KNOWN_ERA, (self._era,)):
            # an era of that start has no changes: what it had was not in the copy put back
            self._session.run(replacing(EraRow), (self._began_at, self._era))
        self._session.run(_SET_SEQUENCE, (self._sequence,))
        self._session.run(_SET_RECORDS, (self._records, self._source.source))

    def _stored(self, keys: Sequence[str]) -> dict[str, Stored]:
        """What is there, by key."""
        by_key: dict[str, Stored] = {}
        lines = self._session.rows(self._find, (orjson.dumps(keys).decode(),))
        for line in lines:
            key, number, created, created_at, latest, changes, value, stored_sum, text, *held = line
            dated = None if changes is None else changes.decode(errors="replace")
            own = line_sum(key, created, created_at, dated)
            by_key[key] = Stored(
                number,
                FieldChange(created, created_at),
                latest,
                parse_changes(changes),
                self._was_at(value),
                stored_sum is None or is_line_of(own, stored_sum),
                held,
                checked_text(self._source.layout, own, stored_sum, text),
            )
        return by_key

    def _come_back(self, keys: Iterable[str]) -> None:
        """Look for the deletions that new records follow."""
        self._deleted = dict[str, int]()
        if self._has_gone:
            listed = orjson.dumps(list(keys)).decode()
            source_key = (self._source.source, listed)
            self._deleted = dict(self._session.rows(f"{_FIND_GONE} {self._among}", source_key))

    def _was_at(self, value: Value) -> Value:
        """The consent-time instant, of its column: days begin at 00:00:00Z."""
        return bound(value * DAY_NANOSECONDS) if self._is_day and isinstance(value, int) else value

    def _create(self, write: Prepared) -> None:
        previous = self._deleted.get(write.key)
        if previous is not None:
            self._pending.back.append(write.key)
        self._record(
            write.key, write.emitted_at_ns, (0, None), (1, write.consent_at), None, previous
        )
        self._insert_new(write)
        self._records += 1

    def _insert_new(self, write: Prepared) -> None:
        """All of it dates from the change that was just noted."""
        created = FieldChange(self._sequence, write.emitted_at_ns)
        self._pending.new.append(_New(write, created, write.emitted_at_ns, {}))

    def _heal(self, write: Prepared, stored: Stored) -> None:
        """What takes the place of a damaged record may differ from it in every field."""
        self._change(write, stored, frozenset(orjson.loads(write.text or "{}")))
        self._forget_passages(stored.id, self._embedded)
        self._insert_new(write)

    def _change(self, write: Prepared, stored: Stored, changed: frozenset[str]) -> None:
        """Remove what is there, and note the change."""
        self._erase(stored.id, changed)
        self._record(
            write.key,
            write.emitted_at_ns,
            (1, stored.was_at),
            (1, write.consent_at),
            orjson.dumps(sorted(changed)).decode(),
            stored.sequence,
            stored.held,
        )

    def _replace(self, write: Prepared, stored: Stored, changed: frozenset[str]) -> None:
        self._change(write, stored, changed)
        now = FieldChange(self._sequence, write.emitted_at_ns)
        changes = {**stored.changes, **dict.fromkeys(changed, now)}
        moved = self._source.layout.placed in changed
        if moved:
            self._forget_passages(stored.id, self._embedded)
        latest = max(stored.latest_ns, write.emitted_at_ns)
        at = None if moved else stored.id
        self._pending.new.append(_New(write, stored.created, latest, changes, at))

    def _delete(self, write: Prepared, stored: Stored | None) -> WriteOutcome:
        key = write.key
        if stored is None:
            return WriteOutcome.UNCHANGED
        self._erase(stored.id, self._embedded)
        self._pending.references[key] = {}
        self._pending.mentions[key] = ()
        self._records -= 1
        was = (1, stored.was_at)
        self._record(key, write.emitted_at_ns, was, (0, None), None, stored.sequence, stored.held)
        self._pending.gone.append((self._source.source, key, self._sequence))
        return WriteOutcome.CHANGED

    def _erase(self, row_id: int, changed: Iterable[str]) -> None:
        """Remove a record; what was made of fields that stay as they are may serve again."""
        self._pending.removed.append(row_id)
        self._forget_passages(row_id, set(self._embedded) & set(changed))

    def _forget_passages(self, row_id: int, fields: Iterable[str]) -> None:
        self._pending.passages.update((field, row_id) for field in fields)

    def _record(
        self,
        key: str,
        emitted_at_ns: int,
        before: tuple[int, Value],
        after: tuple[int, Value],
        fields: str | None,
        previous: int | None,
        held: Sequence[Value] | None = None,
    ) -> None:
        self._sequence += 1
        source, now_ns = self._source.source, self._now_ns
        was_held = None if held is None else self._render_held(held)
        # what follows a change is not known when it is written
        line = (fields, emitted_at_ns, now_ns, previous, None, was_held)
        self._pending.changes.append((source, self._sequence, key, *before, *after, *line))
        if previous is not None:
            self._pending.next.append((self._sequence, source, previous))

    def _render_held(self, held: Sequence[Value]) -> str:
        layout, layout_wanted = self._source.layout, self._source.wanted
        if layout_wanted is None:
            return render_held(dict(zip(layout.limiting, held, strict=True)))
        (text,) = held
        data: JsonObject
        try:
            data = orjson.loads(text if isinstance(text, bytes) else b"")
        except orjson.JSONDecodeError:  # a damaged record: nobody knows what it held
            data = {}
        return render_held(limiting_values(data, layout_wanted))

    # What waits --------------------------------------------------------------------------------
    def _flush(self) -> None:
        """First what goes, then what comes."""
        session, pending, tables = self._session, self._pending, self._source.tables
        self._pending = _Pending()
        if pending.removed:
            uncount_lines(session, self._source.layout, tables, pending.removed)
            listed = orjson.dumps(pending.removed).decode()
            for statement in self._remove:
                session.run(statement, (listed,))
        forget_passages(session, tables, pending.passages)
        self._insert(pending)
        self._refer(pending.references)
        put_mentions(session, self._source.source, self._source.layout, pending.mentions)
        if pending.back:
            listed = orjson.dumps(pending.back).decode()
            session.run(f"{_FORGET_COME_BACK} {self._among}", (self._source.source, listed))
        if pending.gone:
            session.add(GoneRow.table.name, GoneRow.table.names, pending.gone)
            self._has_gone = True
        if pending.next:
            session.many(_SET_NEXT, pending.next)
        if pending.changes:
            session.add(ChangeRow.table.name, ChangeRow.table.names, pending.changes)

    def _insert(self, pending: _Pending) -> None:
        layout, tables = self._source.layout, self._source.tables
        moving = [(self._place(new), new.write.key) for new in pending.new if new.at is None]
        ids_kept = [new.at for new in pending.new if new.at is not None]
        ids = iter(free_places(self._session, tables, moving, ids_kept))
        lines = NewLines()
        for write, created, latest_ns, changes, at in pending.new:
            key, text = write.key, write.text or ""
            record_id, dated = next(ids) if at is None else at, render_changes(changes)
            line = (record_id, key, created.sequence, created.emitted_at_ns, latest_ns)
            lines.lines.append((*line, *write.values, write.word_counts, dated))
            own = line_sum(key, created.sequence, created.emitted_at_ns, dated)
            lines.texts.append((record_id, record_sum(own, text.encode()), text))
            if write.words:
                lines.words.append((record_id, write.words))
            pending.references[key] = write.blobs or {}
            pending.mentions[key] = write.mentions
        lines.add(self._session, tables, layout)

    def _place(self, new: _New) -> int:
        return place_in_time(new.write.placed_ns, new.created.emitted_at_ns, self._source.layout)

    def _refer(self, references: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the blob references of records, by their keys."""
        if not references or not self._source.layout.blobs:
            return
        source, listed = self._source.source, orjson.dumps(list(references)).decode()
        old = self._session.rows(
            f"{_FORGET_REFERENCES} {self._among} {_REFERRED}", (source, listed)
        )
        self.released |= {blob for key, blob in old if blob not in references[key].values()}
        lines = [(source, key, *ref) for key, refs in references.items() for ref in refs.items()]
        if lines:
            self._session.add(BlobReferenceRow.table.name, BlobReferenceRow.table.names, lines)


class _New(NamedTuple):
    """A record that is to be written, at a place that is its own already or still to be found."""

    write: Prepared
    created: FieldChange
    latest_ns: int
    changes: Mapping[str, FieldChange]
    at: int | None = None


class _Pending(msgspec.Struct, frozen=True):
    """What a set of writes leaves to be written: rows of `gone`, `changes` and the like."""

    removed: list[int] = msgspec.field(default_factory=list[int])
    passages: set[tuple[str, int]] = msgspec.field(default_factory=set[tuple[str, int]])
    new: list[_New] = msgspec.field(default_factory=list[_New])
    references: dict[str, Mapping[str, str]] = msgspec.field(
        default_factory=dict[str, Mapping[str, str]]
    )
    mentions: dict[str, tuple[tuple[Value, ...], ...]] = msgspec.field(
        default_factory=dict[str, tuple[tuple[Value, ...], ...]]
    )
    back: list[str] = msgspec.field(default_factory=list[str])
    gone: list[tuple[Value, ...]] = msgspec.field(default_factory=list[tuple[Value, ...]])
    next: list[tuple[Value, ...]] = msgspec.field(default_factory=list[tuple[Value, ...]])
    changes: list[tuple[Value, ...]] = msgspec.field(default_factory=list[tuple[Value, ...]])


def _changed_fields(stored: bytes, text: bytes) -> frozenset[str]:
    if stored == text:
        return frozenset()
    return changed_fields(orjson.loads(stored), orjson.loads(text))


def _sets(writes: Iterable[Prepared]) -> Iterator[list[Prepared]]:
    """The writes in their order, in stretches in which each key stands once."""
    some, keys, size_bytes = list[Prepared](), set[str](), 0
    for write in writes:
        if write.key in keys or len(some) == FLUSHED_AT or size_bytes > FLUSHED_BYTES:
            yield some
            some, keys, size_bytes = list[Prepared](), set[str](), 0
        some.append(write)
        keys.add(write.key)
        size_bytes += len(write.text or "")
    if some:
        yield some
