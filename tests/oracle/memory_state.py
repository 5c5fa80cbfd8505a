"""What the memory store holds, and how one write changes it.  Plain: the meaning, not the speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pdpp_kernel.person_fields import PersonField
from pdpp_kernel.persons import (
    NO_CORRECTIONS,
    Corrections,
)
from pdpp_kernel.record import FieldChange, JsonObject, StoredRecord
from pdpp_kernel.vectors import Passage
from personal_server.domain.connection import Connection
from personal_server.domain.stored import (
    BlobUpload,
    Collection,
    RecordWrite,
    Rejection,
    SealingKey,
    StoredDeclaration,
    StreamState,
    ThreadMark,
)
from personal_server.storage.record_changes import changed_fields

Place = tuple[str, str]
Embedded = tuple[str, str, str, str]
"""Connection, stream, key and field; what is kept is the text and its passages."""


@dataclass(frozen=True, slots=True)
class Happened:
    """One committed change: the record before and after it (`None`: absent).

    `limiting` are the fields by which grants could be limited when it was written: of others it
    is not known what the record held before.  Source: docs/contract/resource-server.md 4.8.
    """

    sequence: int
    place: Place
    key: str
    before: JsonObject | None
    after: JsonObject | None
    emitted_at_ns: int
    written_at_ns: int
    limiting: frozenset[str]


@dataclass
class State:
    """Everything, by the keys it is asked for."""

    epoch: str
    sequence: int = 0
    retained_from: int = 0
    forgotten_until_ns: int = 0
    declarations: dict[tuple[str, str], StoredDeclaration] = field(
        default_factory=dict[tuple[str, str], StoredDeclaration]
    )
    limiting: dict[tuple[str, str], frozenset[str]] = field(
        default_factory=dict[tuple[str, str], frozenset[str]]
    )
    blob_fields: dict[Place, tuple[str, ...]] = field(default_factory=dict[Place, tuple[str, ...]])
    connections: dict[str, Connection] = field(default_factory=dict[str, Connection])
    rows: dict[Place, dict[str, StoredRecord]] = field(
        default_factory=dict[Place, dict[str, StoredRecord]]
    )
    history: tuple[Happened, ...] = ()
    collections: dict[str, Collection] = field(default_factory=dict[str, Collection])
    bookmarks: dict[str, StreamState] = field(default_factory=dict[str, StreamState])
    rejections: dict[str, tuple[tuple[int, Rejection], ...]] = field(
        default_factory=dict[str, tuple[tuple[int, Rejection], ...]]
    )
    uploads: dict[tuple[str, str], BlobUpload] = field(
        default_factory=dict[tuple[str, str], BlobUpload]
    )
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    replaced: list[tuple[Place, JsonObject]] = field(default_factory=list[tuple[Place, JsonObject]])
    sealing_keys: tuple[SealingKey, ...] = ()
    thread_marks: dict[Place, frozenset[ThreadMark]] = field(
        default_factory=dict[Place, frozenset[ThreadMark]]
    )

    person_fields: dict[Place, tuple[PersonField, ...]] = field(
        default_factory=dict[Place, tuple[PersonField, ...]]
    )
    corrections: Corrections = NO_CORRECTIONS
    embedding_model: str | None = None
    passages: dict[Embedded, tuple[str, tuple[Passage, ...]]] = field(
        default_factory=dict[Embedded, tuple[str, tuple[Passage, ...]]]
    )

    def copy(self) -> State:
        """A state that later writes to this one leave alone."""
        rows = {place: dict(rows) for place, rows in self.rows.items()}
        return replace(
            self,
            rows=rows,
            declarations=dict(self.declarations),
            limiting=dict(self.limiting),
            blob_fields=dict(self.blob_fields),
            person_fields=dict(self.person_fields),
            connections=dict(self.connections),
            collections=dict(self.collections),
            bookmarks=dict(self.bookmarks),
            rejections=dict(self.rejections),
            uploads=dict(self.uploads),
            blobs=dict(self.blobs),
            thread_marks=dict(self.thread_marks),
            passages=dict(self.passages),
            replaced=[],
        )

    def forget_lost_corrections(self) -> None:
        """Those that name what no record mentions."""
        held = {
            identity
            for place, rows in self.rows.items()
            for row in rows.values()
            for told_by in self.person_fields.get(place, ())
            for identity, _ in told_by.read(row.data)
        }
        self.corrections = Corrections(
            frozenset(pair for pair in self.corrections.merged if {*pair} <= held),
            self.corrections.parted & held,
        )

    def upsert(self, place: Place, write: RecordWrite, data: JsonObject, now_ns: int) -> bool:
        """Replace a record; whether that changed anything."""
        old = self.rows.setdefault(place, {}).get(write.key)
        changed = changed_fields(old.data, data) if old is not None else frozenset[str]()
        if old is not None and not changed:
            return False
        change = self._record(place, write, old.data if old else None, data, now_ns)
        fields: Mapping[str, FieldChange] = dict.fromkeys(changed, change)
        self.rows[place][write.key] = StoredRecord(
            *place,
            key=write.key,
            data=dict(data),
            created=old.created if old else change,
            field_changes={**old.field_changes, **fields} if old else {},
        )
        return True

    def delete(self, place: Place, write: RecordWrite, now_ns: int) -> bool:
        """Remove a record; whether it was there."""
        old = self.rows.get(place, {}).pop(write.key, None)
        if old is None:
            return False
        self._record(place, write, old.data, None, now_ns)
        return True

    def _record(
        self,
        place: Place,
        write: RecordWrite,
        before: JsonObject | None,
        after: JsonObject | None,
        now_ns: int,
    ) -> FieldChange:
        self.sequence += 1
        if before is not None:
            self.replaced.append((place, before))
        connection_id, stream = place
        kind = self.connections[connection_id].connector_key, stream
        limiting = self.limiting.get(kind, frozenset())  # of a stream that nothing declares: none
        written = (write.emitted_at_ns, now_ns)
        happened = Happened(self.sequence, place, write.key, before, after, *written, limiting)
        self.history = (*self.history, happened)
        return FieldChange(self.sequence, write.emitted_at_ns)
