"""What stores keep beside records, and what a write says of itself.  Pure.

Units: `*_ns` are UTC nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.record import JsonObject
from pdpp_kernel.unprinted import Unprinted


class StoredDeclaration(Unprinted, frozen=True):
    """One accepted revision of a source declaration; `raw` is its exact JSON text."""

    connector_key: str
    source_kind: str
    source_id: str
    version: str
    digest: str
    raw: bytes
    registered_at_ns: int
    current: bool


class StoredStream(msgspec.Struct, frozen=True):
    """A stream of a connection that holds, or held, records (declared today or not)."""

    connection_id: str
    connector_key: str
    stream: str
    record_count: int


class RunStatus(StrEnum):
    """How a collection run stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CollectionRun(msgspec.Struct, frozen=True):
    """The latest word about one collection run of a connection."""

    run_id: str
    status: RunStatus
    at_ns: int


class Collection(msgspec.Struct, frozen=True):
    """What freshness is made of: the newest run, and the end of the last successful one."""

    last_run: CollectionRun | None = None
    last_succeeded_at_ns: int | None = None


class RecordWrite(Unprinted, frozen=True):
    """One accepted ingest line: `data` replaces the record, `None` deletes it."""

    key: str
    data: JsonObject | None
    emitted_at_ns: int


class WriteOutcome(StrEnum):
    """What a write did.  `conflict`: an append-only record cannot change; nothing was written."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"


class Rejection(msgspec.Struct, frozen=True):
    """The receipt of a refused line: codes and a pointer, never content."""

    receipt_id: str
    stream: str
    code: str
    path: str | None
    run_id: str | None
    at_ns: int


class Batch(msgspec.Struct, frozen=True):
    """The lines of one ingest call, committed together and in order.

    Shapes: `writes` may be lazy and is consumed once, before the write transaction begins;
        `receipts` then turns the outcomes into the receipts stored with the batch.
    """

    connection_id: str
    stream: Stream
    writes: Iterable[RecordWrite]
    now_ns: int
    receipts: Callable[[Sequence[WriteOutcome]], Sequence[Rejection]] = lambda _: ()


class StreamState(msgspec.Struct, frozen=True):
    """Collector bookmarks of one connection: JSON values by stream."""

    state: Mapping[str, object]
    updated_at_ns: int | None


class ThreadMark(msgspec.Struct, frozen=True):
    """A mark that a record of a thread left.  Units: `at` in seconds."""

    mark: str
    at: int
    thread: str


class BlobUpload(msgspec.Struct, frozen=True):
    """Bytes that a connection has handed in; `blob_id` is `blob_sha256_<hex>`."""

    blob_id: str
    connection_id: str
    size_bytes: int
    mime_type: str
    uploaded_at_ns: int


class IncomingBlob(NamedTuple):
    """Bytes to keep, at most so many; those of a `blob_id` that is held already are not read."""

    chunks: Iterable[bytes]
    mime_type: str
    max_bytes: int
    blob_id: str | None = None


class SealingKey(Unprinted, frozen=True):
    """A server key that seals cursors; retired keys still open what they sealed."""

    key_id: int
    secret: bytes
    created_at_ns: int


class ClockNote(msgspec.Struct, frozen=True):
    """What is known of the clock.

    Shapes: `seen_ns` is the newest instant that was trusted; after a jump `jumped_at_ns` is what
        the clock said when it was noticed, `last_ns` what it said last, `steady_ns` how long the
        server has run since.
    """

    seen_ns: int
    jumped_at_ns: int | None = None
    last_ns: int = 0
    steady_ns: int = 0


class StoreCounts(msgspec.Struct, frozen=True):
    """Everything in a store, counted; `streams` are (connection, stream, records)."""

    epoch: str
    sequence: int
    grants: int
    streams: tuple[tuple[str, str, int], ...]
    blob_ids: tuple[str, ...]


class BackupProof(msgspec.Struct, frozen=True):
    """How the last try to restore a backup went.

    Shapes: `proven_at_ns` is of the last one that came back whole; `skipped` is why the last try
        was left out, empty if it was not.
    """

    tried_at_ns: int
    proven_at_ns: int | None = None
    records: int = 0
    skipped: str = ""


class BackupFailure(msgspec.Struct, frozen=True):
    """That scheduled backups fail; `why` and `next_step` are sentences for the owner."""

    since_ns: int
    why: str
    next_step: str = ""


class BackupSchedule(msgspec.Struct, frozen=True):
    """What the running server backs up by itself.

    Shapes: `recipient` is whom they are sealed for.
    """

    folder: str
    every_hours: int
    keep: int
    recipient: str | None = None


class Rebuild(msgspec.Struct, frozen=True):
    """A stream whose records are being stored another way: so many are, of so many."""

    connection_id: str
    stream: str
    copied: int
    records: int


class WaitingRecord(Unprinted, frozen=True):
    """A record some of whose fields have no passages; `sum` tells whether it is still the same."""

    id: int
    sum: int | None
    texts: Mapping[str, str]


class Unembedded(msgspec.Struct, frozen=True):
    """The next records to embed, and how far their source is done with when they are."""

    tables: int
    position: int | None
    since: int
    records: tuple[WaitingRecord, ...]


class EmbeddingProgress(msgspec.Struct, frozen=True):
    """A stream whose texts are embedded, in these fields alike: of so many records so many wait."""

    connection_id: str
    stream: str
    fields: tuple[str, ...]
    records: int
    waiting: int
