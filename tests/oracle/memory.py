"""The memory store: what every plan means.  The oracle of the other backends, and a test double.

Rule: plain and obviously right; slow is fine.
"""

from __future__ import annotations

import hashlib
import io
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

from msgspec.structs import replace

from pdpp_kernel import persons
from pdpp_kernel.declaration import Semantics
from pdpp_kernel.errors import (
    BodyTooLarge,
    ConnectionNotFound,
    ConnectionNotWritable,
    DeclarationConflict,
    InvalidState,
    NotFound,
)
from pdpp_kernel.persons import Corrections
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.vectors import Passage
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import (
    Batch,
    BlobUpload,
    Collection,
    CollectionRun,
    EmbeddingProgress,
    IncomingBlob,
    Rebuild,
    RecordWrite,
    Rejection,
    RunStatus,
    SealingKey,
    StoredDeclaration,
    StreamState,
    ThreadMark,
    Unembedded,
    WaitingRecord,
    WriteOutcome,
)
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.storage.record_changes import blob_ids
from tests.oracle.memory_passages import lacking
from tests.oracle.memory_snapshot import MemorySnapshot
from tests.oracle.memory_state import Place, State

KEPT_REJECTIONS = 1_000


class MemoryStore:
    """Everything in one state."""

    def __init__(self, subject_id: str = "owner", *, epoch: str = "memory") -> None:
        self.subject_id = subject_id
        self._state = State(epoch)
        self._lock = threading.RLock()
        self._waiting: list[tuple[str, str, str]] = []

    @contextmanager
    def snapshot(
        self,
        timeout_seconds: float | None = READ_DEADLINE_SECONDS,  # the port's
    ) -> Generator[MemorySnapshot, None, None]:
        """See the port."""
        with self._lock:
            state = self._state.copy()
        yield MemorySnapshot(state)

    # Declarations -----------------------------------------------------------------------------
    def put_declaration(self, declaration: SourceDeclaration, raw: bytes, now_ns: int) -> bool:
        """See the port."""
        key, version = declaration.connector_key, declaration.version
        with self._write() as state:
            revisions = [each for each in state.declarations.values() if each.connector_key == key]
            if any(each.source_id != declaration.source_id for each in revisions):
                raise DeclarationConflict("This connector key belongs to another source.")
            known = state.declarations.get((key, version))
            if known is not None and known.digest != declaration.digest:
                raise DeclarationConflict("This version was declared with other content.")
            for each in revisions:
                state.declarations[key, each.version] = replace(each, current=False)
            state.declarations[key, version] = StoredDeclaration(
                connector_key=key,
                source_kind=declaration.source_kind,
                source_id=declaration.source_id,
                version=version,
                digest=declaration.digest,
                raw=raw if known is None else known.raw,
                registered_at_ns=now_ns if known is None else known.registered_at_ns,
                current=True,
            )
            for name, stream in declaration.streams.items():
                state.limiting[key, name] = frozenset(stream.limiting)
            return known is None

    def declaration(self, connector_key: str, version: str | None) -> StoredDeclaration | None:
        """See the port."""
        with self._lock:
            for each in self._state.declarations.values():
                wanted = each.current if version is None else each.version == version
                if each.connector_key == connector_key and wanted:
                    return each
            return None

    def delete_declaration(self, connector_key: str) -> bool:
        """See the port."""
        with self._write() as state:
            if any(c.connector_key == connector_key for c in state.connections.values()):
                raise InvalidState("Connections of this source exist. Delete them first.")
            found = [key for key in state.declarations if key[0] == connector_key]
            for key in found:
                del state.declarations[key]
            return bool(found)

    # Rebuilds: nothing is laid out here -------------------------------------------------------
    def plan_rebuilds(self) -> None:
        """See the port."""

    def rebuild_slice(self) -> bool:
        """See the port."""
        return False

    def merge_slice(self) -> bool:
        """See the port."""
        return False

    def rebuilds(self) -> tuple[Rebuild, ...]:
        """See the port."""
        return ()

    # Connections ------------------------------------------------------------------------------
    def add_connection(
        self, connection: Connection, state: Mapping[str, object] | None = None
    ) -> None:
        """See the port."""
        with self._write() as whole:
            if not any(key == connection.connector_key for key, _ in whole.declarations):
                raise NotFound("No source with this connector key is declared here.")
            whole.connections[connection.connection_id] = connection
        if state:
            self.put_state(connection.connection_id, state, connection.updated_at_ns)

    def update_connection(
        self, connection_id: str, change: Callable[[Connection], Connection]
    ) -> Connection:
        """See the port."""
        with self._write() as state:
            changed = change(_connection(state, connection_id))
            state.connections[connection_id] = changed
            return changed

    def erase_connection(self, connection_id: str, now_ns: int) -> int:
        """See the port."""
        with self._write() as state:
            _connection(state, connection_id)
            places = [place for place in state.rows if place[0] == connection_id]
            count = sum(len(state.rows.pop(place)) for place in places)
            state.history = tuple(h for h in state.history if h.place[0] != connection_id)
            for table in (
                state.connections,
                state.collections,
                state.bookmarks,
                state.rejections,
            ):
                table.pop(connection_id, None)
            for key in [key for key in state.uploads if key[0] == connection_id]:
                del state.uploads[key]
            for place in [place for place in state.thread_marks if place[0] == connection_id]:
                del state.thread_marks[place]
            state.forget_lost_corrections()
            return count

    # Records ----------------------------------------------------------------------------------
    def commit(self, batch: Batch) -> tuple[WriteOutcome, ...]:
        """See the port."""
        writes = list(batch.writes)
        with self._write() as state:
            connection = _connection(state, batch.connection_id)
            if connection.status is ConnectionStatus.REVOKED:
                raise ConnectionNotWritable("This connection was revoked.")
            if connection.connector_key == persons.CONNECTOR_KEY:
                raise ConnectionNotWritable("Persons are worked out from other records.")
            place = (batch.connection_id, batch.stream.name)
            state.blob_fields[place] = batch.stream.blob_fields
            state.person_fields[place] = batch.stream.person_fields
            outcomes = tuple(_write_one(state, place, batch, write) for write in writes)
            if any(outcome is not WriteOutcome.CONFLICT for outcome in outcomes):
                _wake(state, connection, batch.now_ns)
            _keep_receipts(state, batch.connection_id, batch.receipts(outcomes))
            return outcomes

    def delete_record(self, connection_id: str, stream: str, key: str, now_ns: int) -> bool:
        """See the port."""
        with self._write() as state:
            _connection(state, connection_id)
            write = RecordWrite(key, None, now_ns)
            found = state.delete((connection_id, stream), write, now_ns)
            state.forget_lost_corrections()
            return found

    def delete_stream(self, connection_id: str, stream: str, now_ns: int) -> int:
        """See the port."""
        with self._write() as state:
            _connection(state, connection_id)
            keys = sorted(state.rows.get((connection_id, stream), {}))
            for key in keys:
                state.delete((connection_id, stream), RecordWrite(key, None, now_ns), now_ns)
            state.thread_marks.pop((connection_id, stream), None)
            state.forget_lost_corrections()
            return len(keys)

    def prune_history(self, before_ns: int) -> None:
        """See the port."""
        with self._write() as state:
            old = [h.sequence for h in state.history if h.written_at_ns < before_ns]
            state.retained_from = max(state.retained_from, *old, 0)
            if old:
                state.forgotten_until_ns = max(state.forgotten_until_ns, before_ns)

    def finish_erasures(self) -> None:
        """Nothing is left in memory."""

    # Threads ----------------------------------------------------------------------------------
    def thread_marks(
        self, connection_id: str, stream: str, marks: Iterable[tuple[str, int, int]]
    ) -> list[ThreadMark]:
        """See the port."""
        left = self._state.thread_marks.get((connection_id, stream), frozenset())
        return [
            each
            for mark, since, until in marks
            for each in left
            if each.mark == mark and since <= each.at <= until
        ]

    def records_holding(
        self, connection_id: str, stream: str, field: str, value: str, after: str, limit: int
    ) -> list[StoredRecord]:
        """See the port."""
        rows = self._state.rows.get((connection_id, stream), {})
        holding = [key for key, row in rows.items() if row.data.get(field) == value]
        return [rows[key] for key in sorted(holding) if key > after][:limit]

    def records_named(
        self, connection_id: str, stream: str, keys: Sequence[str]
    ) -> list[StoredRecord]:
        """See the port."""
        rows = self._state.rows.get((connection_id, stream), {})
        return [rows[key] for key in {*keys} & rows.keys()]

    def leave_thread_marks(
        self, connection_id: str, stream: str, marks: Iterable[ThreadMark]
    ) -> None:
        """See the port."""
        with self._write() as state:
            place = (connection_id, stream)
            if place in state.rows:
                state.thread_marks[place] = state.thread_marks.get(place, frozenset()) | {*marks}

    # Persons ----------------------------------------------------------------------------------
    def person_corrections(self) -> Corrections:
        """See the port."""
        return self._state.corrections

    def correct_persons(self, change: Callable[[Corrections], Corrections]) -> None:
        """See the port."""
        with self._write() as state:
            state.corrections = change(state.corrections)

    # Collectors -------------------------------------------------------------------------------
    def record_run(self, connection_id: str, run: CollectionRun) -> None:
        """See the port."""
        with self._write() as state:
            _connection(state, connection_id)
            known = state.collections.get(connection_id, Collection())
            succeeded = known.last_succeeded_at_ns
            if run.status is RunStatus.SUCCEEDED:
                succeeded = run.at_ns if succeeded is None else max(succeeded, run.at_ns)
            state.collections[connection_id] = Collection(run, succeeded)

    def state(self, connection_id: str) -> StreamState:
        """See the port."""
        with self._lock:
            _connection(self._state, connection_id)
            return self._state.bookmarks.get(connection_id, StreamState({}, None))

    def put_state(
        self, connection_id: str, changes: Mapping[str, object], now_ns: int
    ) -> StreamState:
        """See the port."""
        with self._write() as state:
            _connection(state, connection_id)
            known = state.bookmarks.get(connection_id, StreamState({}, None))
            merged = {**known.state, **changes}
            kept = {stream: value for stream, value in merged.items() if value is not None}
            state.bookmarks[connection_id] = StreamState(kept, now_ns)
            return state.bookmarks[connection_id]

    def rejections(
        self, connection_id: str, limit: int, before: int | None
    ) -> tuple[tuple[int, Rejection], ...]:
        """See the port."""
        with self._lock:
            _connection(self._state, connection_id)
            kept = self._state.rejections.get(connection_id, ())
            return tuple(each for each in kept if before is None or each[0] < before)[:limit]

    # Blobs ------------------------------------------------------------------------------------
    def receive_blob(
        self,
        connection_id: str,
        chunks: Iterable[bytes],
        mime_type: str,
        now_ns: int,
        max_bytes: int,
    ) -> tuple[BlobUpload, bool]:
        """See the port."""
        with self._write() as state:
            connection = _connection(state, connection_id)
            if connection.status is ConnectionStatus.REVOKED:
                raise ConnectionNotWritable("This connection was revoked.")
            content = b"".join(chunks)
            if len(content) > max_bytes:
                raise BodyTooLarge(f"A blob has at most {max_bytes} bytes.", param="body")
            blob_id = f"blob_sha256_{hashlib.sha256(content).hexdigest()}"
            upload = BlobUpload(blob_id, connection_id, len(content), mime_type, now_ns)
            known = state.uploads.get((connection_id, blob_id))
            state.uploads[connection_id, blob_id] = upload
            state.blobs[blob_id] = content
            return upload, known is None

    def receive_blobs(
        self, connection_id: str, blobs: Iterable[IncomingBlob], now_ns: int
    ) -> list[tuple[BlobUpload, bool]]:
        """See the port."""
        return [
            self.receive_blob(connection_id, blob.chunks, blob.mime_type, now_ns, blob.max_bytes)
            for blob in blobs
            if self.blob_upload(connection_id, blob.blob_id or "") is None
        ]

    def open_blob(self, blob_id: str) -> BinaryIO | None:
        """See the port."""
        with self._lock:
            content = self._state.blobs.get(blob_id)
            return None if content is None else io.BytesIO(content)

    def blob_upload(self, connection_id: str, blob_id: str) -> BlobUpload | None:
        """See the port."""
        with self._lock:
            return self._state.uploads.get((connection_id, blob_id))

    def sweep_blobs(self, before_ns: int) -> int:
        """See the port."""
        with self._write() as state:
            referenced = _references(state)
            old = [
                key
                for key, upload in state.uploads.items()
                if key not in referenced and upload.uploaded_at_ns < before_ns
            ]
            for key in old:
                del state.uploads[key]
            return len(old)

    # Passages: those of a text that changed since are as good as none -------------------------
    def embedding_model(self) -> str | None:
        """See the port."""
        with self._lock:
            return self._state.embedding_model

    def use_embedding_model(self, identity: str | None) -> bool:
        """See the port."""
        with self._write() as state:
            if state.embedding_model != identity:
                state.passages.clear()
            state.embedding_model = identity
        return False

    def unembedded(
        self, connection_id: str, stream: str, fields: Sequence[str], limit: int
    ) -> Unembedded | None:
        """See the port."""
        with self._lock:
            found = lacking(self._state, (connection_id, stream), fields)[:limit]
        self._waiting = [(connection_id, stream, row.key) for row, _ in found]
        records = [WaitingRecord(n, None, texts) for n, (_, texts) in enumerate(found)]
        return Unembedded(0, None, 0, tuple(records)) if records else None

    def put_passages(
        self, work: Unembedded, passages: Mapping[tuple[int, str], Sequence[Passage]]
    ) -> None:
        """See the port."""
        with self._write() as state:
            for record in work.records:
                for field, text in record.texts.items():
                    of_field = tuple(passages.get((record.id, field), ()))
                    state.passages[(*self._waiting[record.id], field)] = (text, of_field)

    def pack_passages(self) -> bool:
        """They are always compared one by one."""
        return False

    def embedding_progress(self) -> tuple[EmbeddingProgress, ...]:
        """See the port."""
        return ()

    # The server -------------------------------------------------------------------------------
    def sealing_keys(self) -> tuple[SealingKey, ...]:
        """See the port."""
        with self._lock:
            return self._state.sealing_keys

    def add_sealing_key(self, secret: bytes, now_ns: int) -> SealingKey:
        """See the port."""
        with self._write() as state:
            key = SealingKey(len(state.sealing_keys) + 1, secret, now_ns)
            state.sealing_keys = (key, *state.sealing_keys)
            return key

    def look_at_damage(self) -> None:
        """Memory is believed."""

    @contextmanager
    def _write(self) -> Generator[State, None, None]:
        """All or nothing: the new state takes the old one's place when the block ends."""
        with self._lock:
            state = self._state.copy()
            yield state
            referenced = _references(state)
            for place, data in state.replaced:
                for blob_id in blob_ids(data, state.blob_fields.get(place, ())).values():
                    if (place[0], blob_id) not in referenced:
                        state.uploads.pop((place[0], blob_id), None)
            held = {blob_id for _, blob_id in state.uploads}
            state.blobs = {each: state.blobs[each] for each in state.blobs if each in held}
            self._state = state


def _connection(state: State, connection_id: str) -> Connection:
    found = state.connections.get(connection_id)
    if found is None:
        raise ConnectionNotFound("No such connection.", param="connection_id")
    return found


def _write_one(state: State, place: Place, batch: Batch, write: RecordWrite) -> WriteOutcome:
    fixed = batch.stream.semantics is Semantics.APPEND_ONLY
    old: StoredRecord | None = state.rows.get(place, {}).get(write.key)
    if fixed and write.data is None:
        return WriteOutcome.CONFLICT
    if write.data is None:
        changed = state.delete(place, write, batch.now_ns)
    else:
        before = (state.sequence, state.history, dict(state.rows.get(place, {})))
        replaced = len(state.replaced)
        changed = state.upsert(place, write, write.data, batch.now_ns)
        if changed and fixed and old is not None:
            state.sequence, state.history, state.rows[place] = before
            del state.replaced[replaced:]
            return WriteOutcome.CONFLICT
    return WriteOutcome.CHANGED if changed else WriteOutcome.UNCHANGED


def _wake(state: State, connection: Connection, now_ns: int) -> None:
    """The first accepted line turns a draft connection active."""
    if connection.status is ConnectionStatus.DRAFT:
        state.connections[connection.connection_id] = replace(
            connection, status=ConnectionStatus.ACTIVE, updated_at_ns=now_ns
        )


def _keep_receipts(state: State, connection_id: str, receipts: Sequence[Rejection]) -> None:
    kept = state.rejections.get(connection_id, ())
    for receipt in receipts:
        number = kept[0][0] + 1 if kept else 1
        kept = ((number, receipt), *kept)[:KEPT_REJECTIONS]
    state.rejections[connection_id] = kept


def _references(state: State) -> frozenset[tuple[str, str]]:
    """(connection, blob) pairs that some record references."""
    return frozenset(
        (place[0], blob_id)
        for place, rows in state.rows.items()
        for row in rows.values()
        for blob_id in blob_ids(row.data, state.blob_fields.get(place, ())).values()
    )
