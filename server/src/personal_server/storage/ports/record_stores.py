"""What writes ask of a store: declarations, accounts, records, files, threads and persons.

Raises: StorageUnavailable when the backend cannot write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import BinaryIO, Protocol

from pdpp_kernel.persons import Corrections
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.connection import Connection
from personal_server.domain.stored import (
    Batch,
    BlobUpload,
    IncomingBlob,
    StoredDeclaration,
    ThreadMark,
    WriteOutcome,
)


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
    """Stores connections: create, rename, change their state."""

    def add_connection(
        self, connection: Connection, state: Mapping[str, object] | None = None
    ) -> None:
        """Store a new one, and what is noted of it.  Raises NotFound for an unknown connector."""
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
    """Writes and deletes records of a connection."""

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

    def receive_blobs(
        self, connection_id: str, blobs: Iterable[IncomingBlob], now_ns: int
    ) -> list[tuple[BlobUpload, bool]]:
        """The same of several, at the cost of one; those known to be held are left out of the list.

        Raises: as of one; some may be kept then.
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
        self, connection_id: str, stream: str, marks: Iterable[tuple[str, int, int]]
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
