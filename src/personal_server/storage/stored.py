"""What stores keep beside records: declarations, runs, receipts, blobs, keys, as values.

Units:  `*_ns` are UTC nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from personal_server.domain.declaration import Stream
from personal_server.domain.record import JsonObject


@dataclass(frozen=True, slots=True)
class StoredDeclaration:
    """One accepted revision of a source declaration; `raw` is its exact JSON text."""

    connector_key: str
    source_kind: str
    source_id: str
    version: str
    digest: str
    raw: bytes = field(repr=False)
    registered_at_ns: int
    current: bool


@dataclass(frozen=True, slots=True)
class StoredStream:
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


@dataclass(frozen=True, slots=True)
class Run:
    """The latest word about one collection run of a connection."""

    run_id: str
    status: RunStatus
    at_ns: int


@dataclass(frozen=True, slots=True)
class Collection:
    """What freshness is made of: the newest run, and the end of the last successful one."""

    last_run: Run | None = None
    last_succeeded_at_ns: int | None = None


@dataclass(frozen=True, slots=True)
class RecordWrite:
    """One accepted ingest line: `data` replaces the record, `None` deletes it."""

    key: str
    data: JsonObject | None = field(repr=False)
    emitted_at_ns: int


class WriteOutcome(StrEnum):
    """What a write did.  `conflict`: an append-only record cannot change; nothing was written."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Rejection:
    """The receipt of a refused line: codes and a pointer, never content."""

    receipt_id: str
    stream: str
    code: str
    path: str | None
    run_id: str | None
    at_ns: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The lines of one ingest call, committed together and in order.

    Shapes: `writes` may be lazy and is consumed once, before the write transaction begins;
        `receipts` then turns the outcomes into the receipts stored with the batch.
    """

    connection_id: str
    stream: Stream
    writes: Iterable[RecordWrite]
    now_ns: int
    receipts: Callable[[Sequence[WriteOutcome]], Sequence[Rejection]] = lambda _: ()


@dataclass(frozen=True, slots=True)
class StreamState:
    """Collector bookmarks of one connection: JSON values by stream."""

    state: Mapping[str, object]
    updated_at_ns: int | None


@dataclass(frozen=True, slots=True)
class BlobUpload:
    """Bytes that a connection has handed in; `blob_id` is `blob_sha256_<hex>`."""

    blob_id: str
    connection_id: str
    size_bytes: int
    mime_type: str
    uploaded_at_ns: int


@dataclass(frozen=True, slots=True)
class SealingKey:
    """A server key that seals cursors; retired keys still open what they sealed."""

    key_id: int
    secret: bytes = field(repr=False)
    created_at_ns: int


@dataclass(frozen=True, slots=True)
class RankedHit:
    """One place of a stored search ranking: no text."""

    connection_id: str
    stream: str
    key: str
    score: float
