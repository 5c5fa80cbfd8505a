"""Storing an export of this program: declare its sources, find or make its connections, write what
they held.

Source: docs/contract/resource-server.md 14.4.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import IO, cast

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.declaration import Stream
from pdpp_kernel.persons import NO_CORRECTIONS, Corrections
from pdpp_kernel.record import blob_references
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.source_item import Data, Skipped
from pdpp_kernel.texts import message
from personal_server.app.own_exports import ExportedConnection, OwnExport
from personal_server.collecting.declarations import declare
from personal_server.collecting.imports import (
    BATCH_BYTES,
    BATCH_RECORDS,
    BLOB_CHUNK_BYTES,
    ImportPorts,
    ImportTally,
    record_counts,
)
from personal_server.collecting.ingest import MAX_LINE_BYTES, LineChecker, LineRefused, ingest
from personal_server.collecting.restored_connections import (
    ExportMaker,
    made_all,
    restored_connection,
)
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.schema_costs import refuse_costly

UNKNOWN_TYPE = "application/octet-stream"
REVOKED_HERE = "connection_revoked"

ShowPlace = Callable[[int], None]


class RestoredConnection(msgspec.Struct):
    """What became of one connection of an export; none where nothing is stored."""

    exported: ExportedConnection
    connection: Connection | None = None
    is_new: bool = False
    tally: ImportTally = msgspec.field(default_factory=ImportTally)

    @property
    def is_unfinished(self) -> bool:
        """Whether something of it could not be stored, other than by the owner's word."""
        return bool(self.tally.skipped_count.keys() - {REVOKED_HERE})


def survey_own_export(export: OwnExport, show_place: ShowPlace) -> list[RestoredConnection]:
    """Check every record, store nothing."""
    results = {
        connection.connection_id: RestoredConnection(connection)
        for connection in export.connections.values()
    }
    for declaration in export.declarations.values():
        refuse_costly(declaration)
    checkers: dict[tuple[str, str], LineChecker] = {}
    position = 0
    for connection_id, name, line in export.records():
        tally = results[connection_id].tally
        show_place(position := position + len(line))
        stream = export.declaration_of(connection_id).streams.get(name)
        if stream is None:
            tally.skip(_undeclared(name))
            continue
        checker = checkers.setdefault((connection_id, name), LineChecker(stream))
        tally.of(name).read += 1
        try:
            checker.check(_fitting(line))
        except LineRefused as refused:
            tally.of(name).rejected += 1
            tally.skip(Skipped(f"{name}{refused.path or ''}", refused.code, refused.message, 0))
    return list(results.values())


def restore_own_export(
    ports: ImportPorts, export: OwnExport, show_place: ShowPlace
) -> list[RestoredConnection]:
    """Declare what is not declared, find or make the connections, store what they held.

    Raises: DeclarationConflict, StorageUnavailable.
    """
    declared = {
        key: _declared(ports, declaration) for key, declaration in export.declarations.items()
    }
    own = ports.own_signer()
    maker = ExportMaker(export.signer, own is not None and export.signer == own)
    results = {
        connection.connection_id: _restored(
            ports, maker, connection, declared[connection.connector_key]
        )
        for connection in export.connections.values()
    }
    position = 0
    for (connection_id, name), lines in groupby(export.records(), key=lambda line: line[:2]):
        restored = results[connection_id]
        declaration = declared[restored.exported.connector_key]
        writing = _StreamRestore(ports, export.open_blob, restored, declaration, name)
        for batch in _batches(line for _, _, line in lines):
            writing.store(batch)
            show_place(position := position + sum(map(len, batch)))
    for result in results.values():
        _settle_status(ports, result)
    exported = export.corrections
    if exported != NO_CORRECTIONS and made_all(ports.store, maker):
        ports.store.correct_persons(
            lambda corrections: Corrections(
                corrections.merged | exported.merged, corrections.parted | exported.parted
            )
        )
    return list(results.values())


def _declared(ports: ImportPorts, exported: SourceDeclaration) -> SourceDeclaration:
    """What this server says of a source, if it says anything: it may know more by now."""
    stored = ports.store.declaration(exported.connector_key, None)
    if stored is not None and stored.source_id == exported.source_id:
        return parse_declaration(stored.raw)
    return declare(ports.store, exported.raw, ports.clock()).declaration


def _restored(
    ports: ImportPorts,
    maker: ExportMaker,
    exported: ExportedConnection,
    declaration: SourceDeclaration,
) -> RestoredConnection:
    connection, is_new = restored_connection(
        ports.store,
        maker,
        declaration,
        exported.connection_id,
        exported.display_name,
        exported.created_at_ns,
        ports.clock(),
        ports.random_bytes,
    )
    return RestoredConnection(exported, connection, is_new)


def _settle_status(ports: ImportPorts, restored: RestoredConnection) -> None:
    """Give a new connection the status it had, once its records are stored."""
    status, connection = restored.exported.status, restored.connection
    if connection is None or not restored.is_new:
        return
    if status in (ConnectionStatus.PAUSED, ConnectionStatus.REVOKED):
        now_ns = ports.clock()
        revoked_at_ns = now_ns if status is ConnectionStatus.REVOKED else None
        restored.connection = ports.store.update_connection(
            connection.connection_id,
            lambda connection: replace(
                connection, status=status, updated_at_ns=now_ns, revoked_at_ns=revoked_at_ns
            ),
        )


class _StreamRestore:
    """The records of one stream of one connection."""

    def __init__(
        self,
        ports: ImportPorts,
        open_blob: Callable[[str], IO[bytes] | None],
        restored: RestoredConnection,
        declaration: SourceDeclaration,
        name: str,
    ) -> None:
        self._ports = ports
        self._open_blob = open_blob
        self._connection = cast("Connection", restored.connection)
        self._tally = restored.tally
        self._stream = declaration.streams.get(name)
        self._name = name

    def store(self, lines: list[bytes]) -> None:
        """Blobs before the records that point to them."""
        if self._connection.status is ConnectionStatus.REVOKED:
            reason = message("this account was blocked for good here and does not change")
            self._skip(lines, Skipped(self._name, REVOKED_HERE, reason, 0))
        elif self._stream is None:
            self._skip(lines, _undeclared(self._name))
        else:
            for line in lines:
                for blob_id, reference in _blobs_of(line).items():
                    self._store_blob(blob_id, reference)
            self._ingest(lines, self._stream)

    def _ingest(self, lines: list[bytes], stream: Stream) -> None:
        connection_id, store = self._connection.connection_id, self._ports.store
        before = record_counts(store, connection_id).get(self._name, 0)
        result = ingest(
            store,
            connection_id,
            stream,
            map(_fitting, lines),
            now_ns=self._ports.clock(),
            new_receipt_id=self._ports.new_id,
        )
        self._tally.add(self._name, result)
        after = record_counts(store, connection_id).get(self._name, 0)
        self._tally.of(self._name).new += after - before

    def _store_blob(self, blob_id: str, reference: Mapping[str, object]) -> None:
        connection_id, store = self._connection.connection_id, self._ports.store
        if store.blob_upload(connection_id, blob_id) is not None:
            return
        content = self._open_blob(blob_id)
        if content is None:
            reason = message(
                "the export does not contain this file; only .tar and .zip exports contain files"
            )
            self._tally.skip(Skipped(self._name, "file_not_in_export", reason, 0))
            return
        with content:
            mime_type = reference.get("mime_type")
            chunks = iter(lambda: content.read(BLOB_CHUNK_BYTES), b"")
            store.receive_blob(
                connection_id,
                chunks,
                mime_type if isinstance(mime_type, str) else UNKNOWN_TYPE,
                self._ports.clock(),
                sys.maxsize,  # it was stored once, and its digest is proved
            )
            self._tally.blobs += 1

    def _skip(self, lines: list[bytes], skipped: Skipped) -> None:
        for _ in lines:
            self._tally.skip(skipped)


def _undeclared(stream: str) -> Skipped:
    return Skipped(
        stream, "undeclared_stream", "the description of its source has no such kind of records", 0
    )


def _blobs_of(line: bytes) -> Mapping[str, Mapping[str, object]]:
    """The files that a line names; none of one that is no record, which is refused after this."""
    if b'"blob_id"' not in line:
        return {}
    try:
        content: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    data = cast("Data", content).get("data") if isinstance(content, dict) else None
    return blob_references(cast("Data", data)) if isinstance(data, dict) else {}


def _fitting(line: bytes) -> bytes:
    """What an export adds to a line may make it longer than a line may be; a delete fits none."""
    is_long = len(line) > MAX_LINE_BYTES
    if not is_long and b"delete" not in line and b"\\u" not in line:
        return line
    try:
        content: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    members = cast("Data", content) if isinstance(content, dict) else {}
    if members.get("op") == "delete":
        return orjson.dumps(members | {"data": None})  # an export says what there is
    if is_long and members.keys() >= {"data", "emitted_at"}:
        return orjson.dumps({name: members[name] for name in ("data", "emitted_at")})
    return line


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size_bytes = 0
    for line in lines:
        batch.append(line)
        size_bytes += len(line)
        if len(batch) >= BATCH_RECORDS or size_bytes >= BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch
