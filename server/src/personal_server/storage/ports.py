"""What the rest of the program asks of a store: small ports, the same for every backend.

Rule: a backend receives plans and values, never grants or tokens.  All methods are synchronous;
surfaces call them in worker threads.

Units:  `*_ns` are UTC nanoseconds since 1970; `timeout_seconds` counts from the call.
Raises: QueryTimeout past the time limit, StorageUnavailable when the backend cannot answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, BinaryIO, Literal, Protocol, TypeVar

from pdpp_kernel.declaration import SourceDeclaration, Stream
from pdpp_kernel.persons import Corrections
from pdpp_kernel.record import DamagedRow, JsonObject, RecordPlace, StoredRecord
from pdpp_kernel.vectors import Passage
from personal_server.domain.connection import Connection
from personal_server.domain.disclosure import AskedDetail, DisclosureEntry
from personal_server.enforcement.plans import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    ChildrenPlan,
    FieldWindowPlan,
    KeysPlan,
    MeaningPlan,
    NeighboursPlan,
    RecordPlan,
    RecordsPlan,
    SearchPlan,
    TimelinePlan,
)
from personal_server.enforcement.rows import (
    Aggregation,
    BlobReference,
    Children,
    Feed,
    FieldWindow,
    Matches,
    Nearest,
    Neighbours,
    RowPage,
    Span,
    Summary,
)
from personal_server.enforcement.scopes import Scope


# What stores keep beside records --------------------------------------------------------------
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
class CollectionRun:
    """The latest word about one collection run of a connection."""

    run_id: str
    status: RunStatus
    at_ns: int


@dataclass(frozen=True, slots=True)
class Collection:
    """What freshness is made of: the newest run, and the end of the last successful one."""

    last_run: CollectionRun | None = None
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
class ThreadMark:
    """A mark that a record of a thread left.  Units: `at` in seconds."""

    mark: str
    at: int
    thread: str


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
class ClockNote:
    """What is known of the clock.

    Shapes: `seen_ns` is the newest instant that was trusted; after a jump `jumped_at_ns` is what
        the clock said when it was noticed, `last_ns` what it said last, `steady_ns` how long the
        server has run since.
    """

    seen_ns: int
    jumped_at_ns: int | None = None
    last_ns: int = 0
    steady_ns: int = 0


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """Everything in a store, counted; `streams` are (connection, stream, records)."""

    epoch: str
    sequence: int
    grants: int
    streams: tuple[tuple[str, str, int], ...]
    blob_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BackupProof:
    """How the last try to restore a backup went.

    Shapes: `proven_at_ns` is of the last one that came back whole; `skipped` is why the last try
        was left out, empty if it was not.
    """

    tried_at_ns: int
    proven_at_ns: int | None = None
    records: int = 0
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class BackupSchedule:
    """What the running server backs up by itself.

    Shapes: `recipient` is whom they are sealed for.
    """

    folder: str
    every_hours: int
    keep: int
    recipient: str | None = None


@dataclass(frozen=True, slots=True)
class Rebuild:
    """A stream whose records are being stored another way: so many are, of so many."""

    connection_id: str
    stream: str
    copied: int
    records: int


@dataclass(frozen=True, slots=True)
class WaitingRecord:
    """A record some of whose fields have no passages; `sum` tells whether it is still the same."""

    id: int
    sum: int | None
    texts: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Unembedded:
    """The next records to embed, and how far their source is done with when they are."""

    tables: int
    position: int | None
    since: int
    records: tuple[WaitingRecord, ...]


@dataclass(frozen=True, slots=True)
class EmbeddingProgress:
    """A stream whose texts are embedded, in these fields alike: of so many records so many wait."""

    connection_id: str
    stream: str
    fields: tuple[str, ...]
    records: int
    waiting: int


READ_DEADLINE_SECONDS = 15.0
Derived = MutableMapping[object, Any]
"""What was made of one state of the store, for whoever reads the same state again."""
T = TypeVar("T")


def once(derived: Derived, key: object, make: Callable[[], T]) -> T:
    """What was made of this state before, else what is made of it now."""
    if key not in derived:
        derived[key] = make()
    return derived[key]


class PastBudget(Exception):
    """A brief read took more than it may.  It is asked again where it may take its time."""


class ChangeSignal(Protocol):
    """Tells whoever waits that something changed: a record, or anything that is audited.

        seen = signal.count
        while is_serving:
            do_what_is_due()  # reads for itself what changed
            seen = signal.wait(seen, timeout_seconds=60)

    Rule: whichever process wrote.  It tells after the write is committed, at once or within about
    a second; several changes may be told as one.  Nothing is missed between `count` and `wait`.
    While the database does not answer nothing is told, and what changed meanwhile afterwards.
    """

    @property
    def count(self) -> int:
        """How often something was told since the store was opened."""
        ...

    def wait(self, seen: int, timeout_seconds: float) -> int:
        """Block this worker thread until the count is beyond `seen`, or so long; the count then."""
        ...


# Reading --------------------------------------------------------------------------------------
class CatalogReads(Protocol):
    """What exists: declarations, connections, streams, runs."""

    @property
    def derived(self) -> Derived:
        """What was made of this state of the store before; another state has none of it."""
        ...

    def declarations(self) -> tuple[StoredDeclaration, ...]:
        """The current revision of every source, by connector key."""
        ...

    def connections(self) -> tuple[Connection, ...]:
        """All connections that are not erased, by id."""
        ...

    def stored_streams(self) -> tuple[StoredStream, ...]:
        """Streams with their stored record counts, by (connection, stream)."""
        ...

    def collections(self) -> Mapping[str, Collection]:
        """Freshness inputs by connection id; connections without runs are absent."""
        ...


class ReadSnapshot(CatalogReads, Protocol):
    """One consistent state of the store.  Used by one thread at a time."""

    # Rows by place, key and relation.

    def page(self, plan: RecordsPlan) -> RowPage:
        """The rows after a position, in order."""
        ...

    def timeline(self, plan: TimelinePlan) -> RowPage:
        """The rows of several streams after a position, in the order of their times."""
        ...

    def record(self, plan: RecordPlan) -> tuple[StoredRecord, ...]:
        """The visible rows with a key, by connection."""
        ...

    def records(self, plans: Sequence[KeysPlan]) -> Mapping[RecordPlace, StoredRecord]:
        """The visible rows with some keys, of several sources at once."""
        ...

    def children(self, plan: ChildrenPlan) -> Mapping[str, Children]:
        """Children by parent value; parents without any are absent."""
        ...

    def neighbours(self, plan: NeighboursPlan) -> Neighbours:
        """The rows beside a position."""
        ...

    def field_window(self, plan: FieldWindowPlan) -> tuple[FieldWindow, ...]:
        """One window per visible record with the key, by connection."""
        ...

    # Exact numbers over visible records.

    def count(self, plan: RecordsPlan) -> int:
        """How many."""
        ...

    def span(self, plan: RecordsPlan) -> Span:
        """How many, and the extreme stored values of a field."""
        ...

    def summary(self, scope: Scope) -> Summary:
        """How many, and when the newest granted change came."""
        ...

    def aggregate(self, plan: AggregatePlan) -> Aggregation:
        """A metric, perhaps grouped."""
        ...

    @property
    def damaged(self) -> Sequence[DamagedRow]:
        """Visible records that the reads of this snapshot met and left out, since their bytes are
        not those that were written; figures count them.
        """
        ...

    # The change feed and what its bookmarks are judged by.

    @property
    def epoch(self) -> str:
        """A random id made with the store; a restored store has another."""
        ...

    @property
    def horizon(self) -> int:
        """The highest committed change number of this snapshot (0 before the first)."""
        ...

    @property
    def retained_from(self) -> int:
        """Feeds with `since` below this number cannot be answered any more (0: all can)."""
        ...

    @property
    def forgotten_until_ns(self) -> int:
        """Changes written before this instant may be forgotten (0: none is)."""
        ...

    def first_change_after(self, scopes: Sequence[Scope], instant_ns: int) -> int | None:
        """The number of the first change of these streams that was written after an instant.

        Where the clock was set back meanwhile: of one of the places where it passed the instant.
        """
        ...

    def changed_after(self, sequence: int) -> Sequence[tuple[str, str]]:
        """Each (connection, stream) with a later change, whoever may see it; in order."""
        ...

    def era(self, sequence: int) -> str:
        """The era in which a change was written; a copy put back goes on in another one."""
        ...

    def changes(self, plan: ChangesPlan) -> Feed:
        """Relevant changes in order of their number."""
        ...

    # Search, blobs, and the whole of a stream.

    def search(self, plan: SearchPlan) -> Matches:
        """Candidates for ranking, with exact document frequencies."""
        ...

    def count_terms(self, plan: SearchPlan) -> tuple[int, ...] | None:
        """How many visible records hold each of the terms; counting stops at the frequency limit.

        `None` where that takes longer than the scopes may take together.
        """
        ...

    def walked_seconds(self, scopes: Sequence[Scope]) -> float:
        """How long it may take for a word to look at all records, hidden ones too, of the sources
        that are searched by an index of words instead of by texts.
        """
        ...

    def nearest(self, plan: MeaningPlan) -> Nearest:
        """The records nearest in meaning."""
        ...

    def embedding_model(self) -> str | None:
        """The model whose vectors are kept."""
        ...

    def count_unembedded(self, scopes: Sequence[Scope]) -> int:
        """How many visible records wait for their passages, at least."""
        ...

    def blob(self, plan: BlobPlan) -> tuple[BlobReference, ...]:
        """References of visible records to a blob uploaded for their connection, in order."""
        ...

    def export(self, connection_id: str, stream: str) -> Iterator[StoredRecord]:
        """Every stored row of a stream by key, declared today or not.  The owner's export only."""
        ...


class Snapshots(Protocol):
    """Where every read begins."""

    @property
    def subject_id(self) -> str:
        """The owner whose records these are."""
        ...

    def snapshot(
        self, timeout_seconds: float | None = READ_DEADLINE_SECONDS
    ) -> AbstractContextManager[ReadSnapshot]:
        """A snapshot whose reads together may take that long (`None`: as long as they take)."""
        ...


# Writing --------------------------------------------------------------------------------------
class DeclarationStore(Protocol):
    """Source declarations and their revisions."""

    def put_declaration(self, declaration: SourceDeclaration, raw: bytes, now_ns: int) -> bool:
        """Make a revision current, with its columns and indexes; whether it is new.

        Raises: DeclarationConflict for a known version with another digest, or a connector key
            that belongs to another source.
        """
        ...

    def declaration(self, connector_key: str, version: str | None) -> StoredDeclaration | None:
        """One revision; the current one without a version."""
        ...

    def delete_declaration(self, connector_key: str) -> bool:
        """Forget a source; whether it existed.  Raises InvalidState while connections exist."""
        ...


class ConnectionStore(Protocol):
    """Connections."""

    def add_connection(self, connection: Connection) -> None:
        """Store a new connection.  Raises NotFound for an unknown connector."""
        ...

    def update_connection(
        self, connection_id: str, change: Callable[[Connection], Connection]
    ) -> Connection:
        """Apply a pure change in one transaction.  Raises ConnectionNotFound."""
        ...

    def erase_connection(self, connection_id: str, now_ns: int) -> int:
        """Erase everything of a connection; how many records it held.

        Raises: ConnectionNotFound, ConnectionBusy during a write.
        """
        ...


class RecordWriter(Protocol):
    """Writes of records."""

    def commit(self, batch: Batch) -> tuple[WriteOutcome, ...]:
        """Write a batch in one transaction; one outcome per write, in order.

        Raises: ConnectionNotFound, ConnectionNotWritable when revoked.
        """
        ...

    def delete_record(self, connection_id: str, stream: str, key: str, now_ns: int) -> bool:
        """Erase one record and leave a tombstone; whether it existed."""
        ...

    def delete_stream(self, connection_id: str, stream: str, now_ns: int) -> int:
        """Erase all records of a stream, a tombstone each; how many there were."""
        ...

    def prune_history(self, before_ns: int) -> None:
        """Forget changes written before an instant; `beginning` stays complete."""
        ...

    def finish_erasures(self) -> None:
        """Take out of the files what erasures had to leave: words in an index, what somebody was
        reading, bytes that a killed process had no time to remove.
        """
        ...


class CollectorStore(Protocol):
    """What collectors leave beside records."""

    def record_run(self, connection_id: str, run: CollectionRun) -> None:
        """Store the newest word about a run.  Raises ConnectionNotFound."""
        ...

    def state(self, connection_id: str) -> StreamState:
        """Collector bookmarks.  Raises ConnectionNotFound."""
        ...

    def put_state(
        self, connection_id: str, changes: Mapping[str, object], now_ns: int
    ) -> StreamState:
        """Replace per stream (`None` removes) and return the whole.  Raises ConnectionNotFound."""
        ...

    def rejections(
        self, connection_id: str, limit: int, before: int | None
    ) -> tuple[tuple[int, Rejection], ...]:
        """Receipts with their numbers, newest first, numbers below `before`."""
        ...


class BlobStore(Protocol):
    """Bytes that records refer to, by their content."""

    def receive_blob(
        self,
        connection_id: str,
        chunks: Iterable[bytes],
        mime_type: str,
        now_ns: int,
        max_bytes: int,
    ) -> tuple[BlobUpload, bool]:
        """Keep bytes for a connection; whether it did not hold them yet.

        Raises: BodyTooLarge, ConnectionNotFound, ConnectionNotWritable when revoked.
        """
        ...

    def open_blob(self, blob_id: str) -> BinaryIO | None:
        """The bytes, seekable; permission is settled before.  `None` when nobody holds them.

        Raises: DamagedRecord for bytes that are not those that were stored.
        """
        ...

    def blob_upload(self, connection_id: str, blob_id: str) -> BlobUpload | None:
        """What is known of a connection's blob."""
        ...

    def sweep_blobs(self, before_ns: int) -> int:
        """Remove uploads older than that which no record references; how many."""
        ...


class StoredRecords(Protocol):
    """Records as they stand, for whoever writes them again; damaged ones are left out.

    Nothing of them leaves the server: reads of them are authorized, and these are not.
    """

    def records_holding(
        self, connection_id: str, stream: str, field: str, value: str, after: str, limit: int
    ) -> list[StoredRecord]:
        """Those whose field, which is grouped by, is that string; by key, behind a key."""
        ...

    def records_named(
        self, connection_id: str, stream: str, keys: Sequence[str]
    ) -> list[StoredRecord]:
        """Those with these keys."""
        ...


class ThreadStore(Protocol):
    """The marks by which records find their threads (`domain.source_item.ThreadLinks`)."""

    def thread_marks(
        self, connection_id: str, stream: str, wanted: Iterable[tuple[str, int, int]]
    ) -> list[ThreadMark]:
        """Those of these marks that were left between two instants each, both inclusive."""
        ...

    def leave_thread_marks(
        self, connection_id: str, stream: str, marks: Iterable[ThreadMark]
    ) -> None:
        """Keep marks of a stream that holds records."""
        ...


class PersonStore(Protocol):
    """What the owner said of whose an address, number or handle is (`domain.persons`)."""

    def person_corrections(self) -> Corrections:
        """What was said so far."""
        ...

    def correct_persons(self, change: Callable[[Corrections], Corrections]) -> None:
        """Apply a pure change in one transaction.

        What is erased takes corrections along that name an identity no record mentions any more.
        """
        ...


class ServerStore(Protocol):
    """What the server keeps for itself."""

    def sealing_keys(self) -> tuple[SealingKey, ...]:
        """All keys, newest first."""
        ...

    def add_sealing_key(self, secret: bytes, now_ns: int) -> SealingKey:
        """Store a new newest key."""
        ...

    def look_at_damage(self) -> None:
        """Forget of the damage that reads met what was healed since."""
        ...


class RebuildStore(Protocol):
    """Work that grows with the records, done in slices while others read and write.

    A declaration, or a newer version of the program, may store a stream another way.  Its records
    stay readable and writable; until it is done, searches find words only where they are indexed.
    """

    def plan_rebuilds(self) -> None:
        """Have everything stored as this version of the program stores it."""
        ...

    def rebuild_slice(self) -> bool:
        """Work for some hundredths of a second; whether more is left."""
        ...

    def merge_slice(self) -> bool:
        """Merge a little of the word indexes written to of late; whether more may be left.

        A word is looked up in every part that an index lies in, a misspelled one in hundreds of
        spellings.
        """
        ...

    def rebuilds(self) -> tuple[Rebuild, ...]:
        """What is under way, by (connection, stream)."""
        ...


class PassageStore(Protocol):
    """Passages of texts as vectors (`domain.vectors`), for whoever embeds."""

    def embedding_model(self) -> str | None:
        """The model whose vectors are kept."""
        ...

    def use_embedding_model(self, identity: str | None) -> bool:
        """Keep vectors of that model only; whether others are left, for another call."""
        ...

    def unembedded(
        self, connection_id: str, stream: str, fields: Sequence[str], limit: int
    ) -> Unembedded | None:
        """Some records whose fields have no passages; `None` when there are no more."""
        ...

    def put_passages(
        self, work: Unembedded, made: Mapping[tuple[int, str], Sequence[Passage]]
    ) -> None:
        """Keep what was made of records (by id and field), and that they are done with."""
        ...

    def pack_passages(self) -> bool:
        """Have some passages compared sooner; whether there was anything to do."""
        ...

    def embedding_progress(self) -> tuple[EmbeddingProgress, ...]:
        """How far it is, by (connection, stream)."""
        ...


class RecordStore(
    Snapshots,
    DeclarationStore,
    ConnectionStore,
    RecordWriter,
    CollectorStore,
    BlobStore,
    StoredRecords,
    ThreadStore,
    PersonStore,
    ServerStore,
    RebuildStore,
    PassageStore,
    Protocol,
):
    """Everything a backend does for records."""


# The disclosure log ---------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class DisclosureQuery:
    """Which entries: equal members, a time span, and below a number.

    Shapes: `equal` holds (member of `DisclosureEntry`, value); `below` is an entry number.
    Units:  UTC nanoseconds; since inclusive, until exclusive.
    """

    limit: int
    equal: tuple[tuple[str, str], ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None
    below: int | None = None


ShareOf = Literal["day", "client_id", "stream"]
"""What is counted by: the day in UTC (from 1970), who read, what of."""


@dataclass(frozen=True, slots=True)
class DisclosedShare:
    """What one of them was given: records, in how many answers.

    Shapes: `name` is empty for the owner's tokens, and for answers that name no stream.
    """

    name: str
    record_count: int
    answer_count: int


class DisclosureStore(Protocol):
    """The disclosure log of one subject.

    Rule: it is appended to, read, and forgotten by age; no method changes or deletes one entry.
    """

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        """Write entries, in order, in one transaction.  Raises StorageUnavailable."""
        ...

    def disclosures(self, query: DisclosureQuery) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries with their numbers, newest first."""
        ...

    def disclosed_since(self, grant_id: str, since_ns: int) -> tuple[int, int]:
        """Records and bytes served for a grant since an instant."""
        ...

    def shares(self, of: ShareOf, query: DisclosureQuery) -> tuple[DisclosedShare, ...]:
        """What was served, summed by one member, the most answers first.

        Of the whole UTC days that the query touches; `equal` is about `client_id` and `stream`.
        """
        ...

    def asked_details(self, numbers: Sequence[int]) -> Mapping[int, AskedDetail]:
        """What lies beside entries, by their numbers, as long as it is kept."""
        ...

    def disclosures_of(
        self, connection_id: str, stream: str, key: str, looked_at: int
    ) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries by which a record was handed out, newest first, of as many as are looked at.

        Those of its stream beside which keys lie are looked at, the newest first.
        """
        ...

    def forget_details(self, before_ns: int) -> None:
        """Remove what lies beside entries older than the time it is kept; the lines stay."""
        ...

    def forget_disclosures(self, before_ns: int) -> None:
        """Remove entries older than the time they are kept."""
        ...
