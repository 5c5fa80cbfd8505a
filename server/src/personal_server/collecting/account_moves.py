"""Accounts joined and parted, when what was brought in turns out to be one account, or two.

Rule: nothing is taken from an account before another holds it under the same key; what both hold
stays as it is there.  Source: docs/contract/resource-server.md 14.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import InvalidState
from pdpp_kernel.record import StoredRecord, blob_references
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.source_item import Data
from pdpp_kernel.values import instant_text
from personal_server.collecting.imports import BLOB_CHUNK_BYTES, ImportPorts, record_counts
from personal_server.collecting.ingest import IngestResult, ingest
from personal_server.collecting.receipts import ImportMemory, receipts_of
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration

BATCH_RECORDS = 500
WRITABLE = (ConnectionStatus.ACTIVE, ConnectionStatus.DRAFT)


class SharedRecords(msgspec.Struct, frozen=True):
    """How many records an account holds, and how many of them another holds as well."""

    held: int
    shared: int


def merge_preview(ports: ImportPorts, account: Connection, into: Connection) -> SharedRecords:
    """What merging would erase of an account, and what of it is there already; nothing moves.

    Raises: InvalidState, as `merge_accounts` does.
    """
    _checked(ports, account, into)
    return _shared(ports, account, into)


def part_preview(ports: ImportPorts, account: Connection, other: Connection) -> SharedRecords:
    """What the other account holds, and what of it would be taken out; nothing is taken.

    Raises: InvalidState, as `part_accounts` does.
    """
    _checked(ports, other, account)
    return _shared(ports, other, account)


def _shared(ports: ImportPorts, account: Connection, other: Connection) -> SharedRecords:
    in_first = shared = 0
    for name, records in _streams(ports, account):
        for batch in _batches(records):
            in_first += len(batch)
            shared += len(_held(ports, other, name, batch))
    return SharedRecords(in_first, shared)


def merge_accounts(ports: ImportPorts, account: Connection, into: Connection) -> tuple[int, int]:
    """Bring all of an account into another of its source, and erase it: how many records came,
    and how many were erased.

    Raises: InvalidState (another source, or one that takes nothing), ConnectionBusy; then nothing
        was erased.
    """
    declaration = _checked(ports, account, into)
    before = sum(record_counts(ports.store, into.connection_id).values())
    for name, records in _streams(ports, account):
        for batch in _batches(records):
            _copy(ports, into, declaration, name, batch)
            if len(_held(ports, into, name, batch)) != len(batch):
                raise InvalidState("Some records cannot be moved, so nothing was erased.")
    stream = next(iter(declaration.streams))
    memory = ImportMemory(ports.store, into.connection_id, stream)
    for receipt in receipts_of(ports.store, account.connection_id):
        memory.finish("", receipt, ports.clock())
    moved_count = sum(record_counts(ports.store, into.connection_id).values()) - before
    return moved_count, ports.store.erase_connection(account.connection_id, ports.clock())


def part_accounts(ports: ImportPorts, account: Connection, other: Connection) -> int:
    """Take out of an account what another of its source holds as well; how many records.

    Raises: InvalidState (another source, or one that takes nothing).
    """
    declaration = _checked(ports, other, account)
    moved_count = 0
    for name, records in _streams(ports, other):
        for batch in _batches(records):
            at = instant_text(ports.clock())
            shared_keys = _held(ports, account, name, batch)
            lines = [{"op": "delete", "key": key, "emitted_at": at} for key in sorted(shared_keys)]
            moved_count += _ingest(ports, account, declaration.streams[name], lines).records_changed
    return moved_count


def _checked(ports: ImportPorts, account: Connection, into: Connection) -> SourceDeclaration:
    """What their source declares.  Raises: InvalidState."""
    if account.connection_id == into.connection_id or account.connector_key != into.connector_key:
        raise InvalidState("Name two different accounts of the same source.")
    if into.status not in WRITABLE:
        raise InvalidState(
            "That account accepts no records. Allow imports or unblock the account first."
        )
    stored = ports.store.declaration(account.connector_key, None)
    if stored is None:
        raise InvalidState("This server no longer knows the source of these two accounts.")
    declaration = parse_declaration(stored.raw)
    with ports.store.snapshot() as snapshot:
        shared_streams = {
            s.stream for s in snapshot.stored_streams() if s.connection_id == account.connection_id
        }
    if shared_streams - declaration.streams.keys():
        raise InvalidState(
            "One of the two accounts has records of a kind that the source's "
            "description no longer contains."
        )
    return declaration


def _streams(
    ports: ImportPorts, account: Connection
) -> Iterator[tuple[str, Iterator[StoredRecord]]]:
    with ports.store.snapshot() as snapshot:
        names = [
            s.stream for s in snapshot.stored_streams() if s.connection_id == account.connection_id
        ]
        for name in names:
            yield name, snapshot.export(account.connection_id, name)


def _batches(records: Iterator[StoredRecord]) -> Iterator[list[StoredRecord]]:
    while batch := list(islice(records, BATCH_RECORDS)):
        yield batch


def _held(
    ports: ImportPorts, account: Connection, stream: str, records: Sequence[StoredRecord]
) -> set[str]:
    keys = [record.key for record in records]
    return {record.key for record in ports.store.records_named(account.connection_id, stream, keys)}


def _copy(
    ports: ImportPorts,
    into: Connection,
    declaration: SourceDeclaration,
    name: str,
    records: Sequence[StoredRecord],
) -> None:
    present_keys = _held(ports, into, name, records)
    coming = [record for record in records if record.key not in present_keys]
    for record in coming:
        for blob_id in blob_references(record.data):
            _copy_blob(ports, record.connection_id, into, blob_id)
    at = instant_text(ports.clock())
    lines = [{"data": record.data, "emitted_at": at} for record in coming]
    _ingest(ports, into, declaration.streams[name], lines)


def _ingest(
    ports: ImportPorts, into: Connection, stream: Stream, lines: Sequence[Data]
) -> IngestResult:
    return ingest(
        ports.store,
        into.connection_id,
        stream,
        lines,
        now_ns=ports.clock(),
        new_receipt_id=ports.new_id,
    )


def _copy_blob(ports: ImportPorts, from_id: str, into: Connection, blob_id: str) -> None:
    store = ports.store
    upload = store.blob_upload(from_id, blob_id)
    if upload is None or store.blob_upload(into.connection_id, blob_id) is not None:
        return
    content = store.open_blob(blob_id)
    if content is not None:
        with content:
            chunks = iter(lambda: content.read(BLOB_CHUNK_BYTES), b"")
            size_bytes = max(upload.size_bytes, 1)
            store.receive_blob(
                into.connection_id, chunks, upload.mime_type, ports.clock(), size_bytes
            )
