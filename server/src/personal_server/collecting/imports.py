"""One import: the items of a source become records of a connection, batch by batch.

Rule: blobs are stored before the records that point to them, and the place is noted after both;
whatever ends the process, reading on from the place noted repeats at most a batch and loses none.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec

from pdpp_kernel.errors import AmbiguousConnection, ConnectionNotWritable
from pdpp_kernel.source_declaration import OWN_FILE_PREFIX, SourceDeclaration
from pdpp_kernel.source_item import (
    Data,
    Skipped,
    SourceBlob,
    SourceItem,
    SourceRecord,
    ThreadLinks,
)
from pdpp_kernel.texts import message
from pdpp_kernel.values import instant_text
from personal_server.collecting.absent_records import AbsentRecords
from personal_server.collecting.begun_replacements import BegunReplacement
from personal_server.collecting.connections import create_connection
from personal_server.collecting.file_texts import FileTexts, keeps_text
from personal_server.collecting.ingest import IngestResult, ingest
from personal_server.collecting.listed_records import ListedRecords
from personal_server.collecting.readable_export import ReadableExport
from personal_server.collecting.receipts import ImportMemory
from personal_server.collecting.text_readings import TextReadings
from personal_server.collecting.threads import BatchThreads
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import CollectionRun, IncomingBlob, RunStatus
from personal_server.domain.text_language import take_room
from personal_server.storage.ports.whole_store import RecordStore

BATCH_RECORDS = 2_000
BATCH_BYTES = 16 * 1024 * 1024
FIRST_PARTS = 4
"""The first batch is so small a part of one, the next twice as large: storing begins at once, while
the rest is read.
"""
BLOB_CHUNK_BYTES = 1024 * 1024
ID_BYTES = 12
# What is told beside an entry that was read, or that is the same as another.
BESIDE_ENTRIES = frozenset(
    {"duplicate", "no_value", "empty_field", "before_header", "ambiguous_dates"}
)
# What is told of entries that were read all the same.
NOTED = frozenset({"no_value", "empty_field", "no_file", "ambiguous_dates"})
# What was not read for what is wrong with it.
DAMAGE = frozenset(
    {
        "truncated",
        "damaged_file",
        "empty_statement",
        "too_large",
        "too_costly",
        "reader_failed",
        "unreadable_folder",
        "unreadable_part",
    }
)
DAY_CHARS = len("2024-02-29")


class ImportPorts(msgspec.Struct, frozen=True):
    """What an import needs of the rest.

    Shapes: with `is_fed` a feed runs it, and tells itself how fresh the account is; `own_signer`
        names the key that signs exports of this server; batches in `batch_parts` take less memory,
        and more time.
    """

    store: RecordStore
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    is_fed: bool = False
    own_signer: Callable[[], str | None] = lambda: None
    batch_parts: int = 1

    def new_id(self) -> str:
        """An id for a run or a receipt."""
        return self.random_bytes(ID_BYTES).hex()


# Which account a file goes into, by what was said and what is there (accounts of the same source):
#
#   name      accounts there   goes into
#   given     one of the name  that one
#   given     none of it       a new one of that name
#   given     several of it    AmbiguousConnection
#   –         none             a new one, named as the source
#   –         one              that one
#   –         several          AmbiguousConnection
#
# A revoked account is never chosen: naming it is refused, and else it counts as not there. Where
# the owner names none of those there, `whose_file.py` finds the name.


def connection_for(
    ports: ImportPorts, declaration: SourceDeclaration, name: str | None
) -> Connection:
    """The connection an import goes into: the one named, the only one there is, or a new one.

    Shapes: `name` is a display name or a connection id.
    Raises: AmbiguousConnection, ConnectionNotWritable.
    """
    with ports.store.snapshot() as snapshot:
        connections = list(snapshot.connections())
    own = [c for c in connections if c.connector_key == declaration.connector_key]
    if any(c.connection_id == name for c in connections if c not in own):
        raise ConnectionNotWritable(
            "That account belongs to another source.",
            param="connection",
            next_step="Name an account of the same source, or give the name of a new account.",
        )
    usable = [c for c in own if c.status is not ConnectionStatus.REVOKED]
    if name is not None:
        own, usable = (
            [c for c in group if name in (c.display_name, c.connection_id)]
            for group in (own, usable)
        )
    if len(usable) == 1:
        return usable[0]
    if usable:
        labels = ", ".join(c.display_name or c.connection_id for c in usable)
        raise AmbiguousConnection(
            message("There are several accounts of this source: %(names)s.", names=labels),
            param="connection",
            connector_key=declaration.connector_key,
            next_step="Name the account with --connection.",
        )
    if own and name is not None:
        raise ConnectionNotWritable(
            "That account is blocked.",
            param="connection",
            next_step="Unblock the account on the owner pages, or choose another name.",
        )
    return create_connection(
        ports.store,
        ports.store.declaration(declaration.connector_key, None),
        name or declaration.display_name,
        ports.clock(),
        ports.random_bytes,
    )


def record_counts(store: RecordStore, connection_id: str) -> dict[str, int]:
    """How many records the streams of a connection hold."""
    with store.snapshot() as snapshot:
        return {
            stream.stream: stream.record_count
            for stream in snapshot.stored_streams()
            if stream.connection_id == connection_id
        }


class ImportRun:
    """The import of one reading into one connection."""

    def __init__(
        self,
        ports: ImportPorts,
        reading: ReadableExport,
        connection: Connection,
        declaration: SourceDeclaration,
        text_readings: TextReadings,
        *,
        from_start: bool = False,
        replaces: BegunReplacement | None = None,
        listed: ListedRecords | None = None,
    ) -> None:
        """An import that finds out what the account has beyond a file that is read whole.

        Shapes: `from_start` where the owner says that the file is whole, or it has to be read so
            again; `replaces` is what it holds of the same file.
        """
        self._ports = ports
        if ports.batch_parts == 1:
            take_room()
        self._reading = reading
        self._connection_id = connection.connection_id
        self._declaration = declaration
        self._run_id = ports.new_id()
        self._emitted_at = reading.captured_at.isoformat()
        self.tally = ImportTally()
        self._fingerprint = reading.fingerprint
        stream = next(iter(declaration.streams))
        self._memory = ImportMemory(ports.store, connection.connection_id, stream)
        self._listed = listed
        # Whoever says that the file is the whole has it read whole, to know what it lacks.
        is_read_whole = from_start or listed is not None or replaces is not None
        self.start = 0 if is_read_whole else self._memory.place(self._fingerprint)
        self.place = self.start
        self._texts = {
            stream.name: FileTexts(ports.store, connection.connection_id, stream, text_readings)
            for stream in declaration.streams.values()
            if keeps_text(stream)
        }
        is_own_table = declaration.connector_key.startswith(OWN_FILE_PREFIX)
        self._replaces, self._stored_before = replaces, dict[str, int]()
        self._absent: AbsentRecords | None = None
        if (is_own_table or replaces) and not self.start:
            self._absent = AbsentRecords(ports.store, connection.connection_id, replaces)

    def run(self, show_place: Callable[[int], None]) -> ImportTally:
        """Read to the end; `show_place` gets the place reached after each batch."""
        before = self._stored_before = record_counts(self._ports.store, self._connection_id)
        self._record(RunStatus.RUNNING)
        with self._ending():
            for batch_end in self._batches(self._reading.items(self.start)):
                self._memory.keep_place(self._fingerprint, batch_end, self._ports.clock())
                self.place = batch_end
                show_place(batch_end)
        stored = record_counts(self._ports.store, self._connection_id)
        for stream, count in stored.items():
            self.tally.of(stream).new = count - before.get(stream, 0)
        if self._absent is not None:
            self._absent.count_all(self.tally.of, self._declaration.streams, stored)
        return self.tally

    def read_texts(self, show_count: Callable[[int], None]) -> None:
        """Read every file of the connection that waits for it; `show_count` gets how many."""
        count = 0
        with self._ending():
            for name, texts in self._texts.items():
                for read in texts.read(partial(self._ingest, name)):
                    count += read
                    show_count(count)
        self._count_texts()

    def finish(self, *, deletes_absent: bool = False, time_zone: str | None = None) -> Data:
        """End a run that was read to its end; its receipt, with the zone of its account's times.

        Rule: what is stored and not in the file is deleted only where every row of it was read
        (`tally.is_complete`); they are ordinary deletions, told to whoever syncs.
        """
        if deletes_absent and self._absent is not None:
            clock, streams = self._ports.clock, self._declaration.streams
            self._absent.delete_all(self.tally.streams, streams, clock, self._delete)
        now = self._ports.clock()
        receipt = self._receipt(now) | ({"time_zone": time_zone} if time_zone else {})
        self._memory.finish(self._fingerprint, receipt, now)
        self._record(RunStatus.SUCCEEDED)
        return receipt

    @contextmanager
    def _ending(self) -> Generator[None]:
        """What ends the run before its end is recorded."""
        try:
            yield
        except KeyboardInterrupt:
            self._record(RunStatus.CANCELLED)
            raise
        except BaseException:
            self._record(RunStatus.FAILED)
            raise

    def _count_texts(self) -> None:
        for name, texts in self._texts.items():
            if texts.counts:
                self.tally.of(name).texts = dict(texts.counts)

    def _delete(self, stream: str, keys: Sequence[str]) -> int:
        at = instant_text(self._ports.clock())
        lines = [{"op": "delete", "key": key, "emitted_at": at} for key in keys]
        return self._ingest(stream, lines).records_changed

    def _batches(self, items: Iterator[SourceItem]) -> Iterator[int]:
        """Store batch after batch; yield the place from which reading would go on.

        A part of an export larger than a batch is stored in several; within it no place is noted.
        """
        parts = FIRST_PARTS * self._ports.batch_parts
        batch, position, within = _Batch(parts), self.start, False
        for item in items:
            begins = item.position > position
            if batch.is_full or (within and begins):
                self._store(batch)
                parts = max(parts // 2, self._ports.batch_parts)
                batch, within = _Batch(parts), not begins
                if begins:
                    yield item.position
            position = item.position
            if isinstance(item, Skipped):
                self.tally.skip(item)
            else:
                if self._absent is not None:
                    self._absent.note(item)
                if self._listed is not None:
                    self._listed.note(item)
                batch.add(item, self._emitted_at)
                self.tally.widen_span(
                    item, self._declaration.streams[item.stream].consent_time_field
                )
        self._store(batch)
        yield position

    def _store_blobs(self, blobs: Sequence[SourceBlob]) -> None:
        first = {blob.blob_id: blob for blob in reversed(blobs)}  # of the same bytes
        incoming = (
            IncomingBlob(_chunks(blob), blob.mime_type, max(blob.size_bytes, 1), blob_id)
            for blob_id, blob in first.items()
        )
        if first:
            self._ports.store.receive_blobs(self._connection_id, incoming, self._ports.clock())
        self.tally.blobs += len(blobs)

    def _store(self, batch: _Batch) -> None:
        if self._listed is not None:
            self._listed.keep()
        self._store_blobs(batch.blobs)
        for stream, lines in batch.lines.items():
            threads = self._threads(stream, batch.threaded.get(stream, []))
            texts = self._texts.get(stream)
            for part in texts.recalled(lines) if texts else [lines]:
                self.tally.add(stream, self._ingest(stream, part))
                if texts:
                    texts.begin(part)
            threads.keep_marks()

    def _threads(self, stream: str, threaded: list[tuple[Data, ThreadLinks]]) -> BatchThreads:
        """Join the records of a batch to threads, and move those that are stored already."""
        declared = self._declaration.streams[stream]
        threads = BatchThreads(self._ports.store, self._connection_id, declared)
        threads.join(threaded)
        for records in threads.moved():
            lines = [{"data": data, "emitted_at": self._emitted_at} for data in records]
            self.tally.of(stream).moved += self._ingest(stream, lines).records_changed
        return threads

    def _ingest(self, stream: str, lines: Sequence[Mapping[str, object]]) -> IngestResult:
        return ingest(
            self._ports.store,
            self._connection_id,
            self._declaration.streams[stream],
            lines,
            now_ns=self._ports.clock(),
            new_receipt_id=self._ports.new_id,
            run_id=self._run_id,
        )

    def _record(self, status: RunStatus) -> None:
        run = CollectionRun(self._run_id, status, self._ports.clock())
        if not self._ports.is_fed:
            self._ports.store.record_run(self._connection_id, run)

    def _receipt(self, now_ns: int) -> Data:
        streams = {name: stream.receipt for name, stream in self.tally.streams.items()}
        if self._replaces:
            streams = self._replaces.since_begun(self.tally.streams, self._stored_before)
        return {
            **self._reading.facts(),
            "imported_at": instant_text(now_ns),
            "from_byte": self.start,
            "earliest": self.tally.earliest,
            "latest": self.tally.latest,
            "streams": streams,
            "skipped": dict(self.tally.skipped_count),
        }


def _chunks(blob: SourceBlob) -> Iterator[bytes]:
    with blob.open() as content:
        while chunk := content.read(BLOB_CHUNK_BYTES):
            yield chunk


class _Batch(msgspec.Struct):
    """Items that are stored together."""

    parts: int
    lines: dict[str, list[Mapping[str, object]]] = msgspec.field(
        default_factory=dict[str, list[Mapping[str, object]]]
    )
    blobs: list[SourceBlob] = msgspec.field(default_factory=list[SourceBlob])
    threaded: dict[str, list[tuple[Data, ThreadLinks]]] = msgspec.field(
        default_factory=dict[str, list[tuple[Data, ThreadLinks]]]
    )
    records: int = 0
    size_bytes: int = 0

    def add(self, record: SourceRecord, emitted_at: str) -> None:
        line = {"data": record.data, "emitted_at": emitted_at}
        self.lines.setdefault(record.stream, []).append(line)
        self.blobs.extend(record.blobs)
        if record.thread is not None:
            self.threaded.setdefault(record.stream, []).append((record.data, record.thread))
        self.records += 1
        self.size_bytes += sum(len(v) for v in record.data.values() if isinstance(v, str))
        self.size_bytes += sum(blob.size_bytes for blob in record.blobs)

    @property
    def is_full(self) -> bool:
        most_records, most_bytes = BATCH_RECORDS // self.parts, BATCH_BYTES // self.parts
        return self.records >= most_records or self.size_bytes >= most_bytes


class StreamTally(msgspec.Struct):
    """What became of the records of one stream."""

    read: int = 0
    changed: int = 0
    rejected: int = 0
    new: int = 0
    moved: int = 0  # stored before, and in another thread since
    absent: int = 0  # stored before, and not in the file; of own tables, and files that came again
    deleted: int = 0  # of those
    of_others: int = 0  # written by others since what is replaced was begun
    # what became of the files that were looked at, by the word of `text_state`
    texts: dict[str, int] = msgspec.field(default_factory=dict[str, int])

    @property
    def receipt(self) -> Data:
        """What an import did to the stream."""
        data: Data = {"new": self.new, "updated": self.updated}
        data |= {"deleted": self.deleted} if self.deleted else {}
        return data | ({"texts": self.texts} if self.texts else {})

    @property
    def updated(self) -> int:
        """Records that were there with other data."""
        return self.changed - self.new

    @property
    def unchanged(self) -> int:
        """Records that were there with the same data."""
        return self.read - self.changed - self.rejected


class ImportTally(msgspec.Struct):
    """What an import did."""

    streams: dict[str, StreamTally] = msgspec.field(default_factory=dict[str, StreamTally])
    skipped: list[Skipped] = msgspec.field(default_factory=list[Skipped])
    skipped_count: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    blobs: int = 0
    earliest: str | None = None
    latest: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every entry of the file was read, but for those that came twice."""
        return not self.skipped_count.keys() - BESIDE_ENTRIES

    @property
    def holds_any(self) -> bool:
        """Whether any record or text was read."""
        return any(stream.read or stream.texts for stream in self.streams.values())

    @property
    def absent(self) -> int:
        """Records that are stored and not in the file."""
        return sum(stream.absent - stream.deleted for stream in self.streams.values())

    def widen_span(self, record: SourceRecord, time_field: str | None) -> None:
        """Widen the span of days to that of a record."""
        moment = record.data.get(time_field) if time_field else None
        if isinstance(moment, str):
            day = moment[:DAY_CHARS]
            self.earliest = min(self.earliest or day, day)
            self.latest = max(self.latest or day, day)

    def of(self, stream: str) -> StreamTally:
        """The tally of one stream."""
        return self.streams.setdefault(stream, StreamTally())

    def add(self, stream: str, result: IngestResult) -> None:
        """Count what became of a batch."""
        tally = self.of(stream)
        tally.read += result.records_attempted
        tally.changed += result.records_changed
        tally.rejected += result.records_rejected
        for rejection in result.rejections:
            self.skip(
                Skipped(f"{stream}{rejection.path or ''}", rejection.code, rejection.message, 0)
            )

    def skip(self, item: Skipped) -> None:
        """Count a skipped thing; the first of each kind are kept as examples."""
        count = self.skipped_count.get(item.code, 0) + 1
        self.skipped_count[item.code] = count
        if count <= 5:
            self.skipped.append(item)
