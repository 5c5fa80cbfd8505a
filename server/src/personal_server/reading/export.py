"""Exporting: everything the owner has, as lines or as an archive, from one snapshot.

Rule: what is exported can be imported again; without its end an export is incomplete.
Source: docs/contract/resource-server.md 14.4.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import time
import zipfile
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any, BinaryIO, Literal

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.errors import DamagedRecord
from pdpp_kernel.persons import NO_CORRECTIONS, Corrections
from pdpp_kernel.record import (
    BLOB_PREFIX,
    DamagedRow,
    StoredRecord,
    blob_references,
)
from pdpp_kernel.values import NANOSECONDS, instant_text, render_instant
from personal_server.domain.connection import Connection
from personal_server.domain.stored import StoredDeclaration, StoredStream
from personal_server.reading.export_names import MANIFEST
from personal_server.reading.ports import SignExport, unsigned
from personal_server.reading.scratch import ScratchStream
from personal_server.reading.shown_disclosures import ShownDisclosure
from personal_server.storage.authorization_rows import GrantRow
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.ports.snapshots import ReadSnapshot

CHUNK_BYTES = 64 * 1024
SPOOLED_ABOVE_BYTES = 4 * 1024 * 1024
FORMAT_VERSION = "1"
CONNECTIONS = "connections.json"
BLOB_FOLDER = "blobs/"
GRANTS = "grants.json"
PERSONS = "persons.json"
DISCLOSURES = "disclosures.ndjson"
END = "export_end.json"

ArchiveForm = Literal["tar", "zip"]

Json = Mapping[str, object]


OpenBlob = Callable[[str], BinaryIO | None]
"""The bytes of a blob id, seekable; `None` when nobody holds them."""


class Enclosures(msgspec.Struct, frozen=True):
    """What an archive holds beside records: grants as agreed, the disclosure log, and what the
    owner said of persons.
    """

    grants: Callable[[], Iterable[Json]] = lambda: ()
    disclosures: Callable[[], Iterable[ShownDisclosure]] = lambda: ()
    corrections: Callable[[], Corrections] = lambda: NO_CORRECTIONS


class Extent(msgspec.Struct, frozen=True):
    """What is exported: the connections and their streams, declared today or not."""

    connections: tuple[Connection, ...]
    streams: tuple[StoredStream, ...]
    planted: frozenset[tuple[str, str, str]] = frozenset()

    def rows(self, snapshot: ReadSnapshot, stored: StoredStream) -> Iterator[StoredRecord]:
        """The records of a stream, without those that the owner planted."""
        stream_key = (stored.connection_id, stored.stream)
        for row in snapshot.export(*stream_key):
            if (*stream_key, row.key) not in self.planted:
                yield row


def extent_of(
    snapshot: ReadSnapshot,
    connection_id: str | None,
    stream: str | None,
    planted: frozenset[tuple[str, str, str]] = frozenset(),
) -> Extent:
    """The part of the store that a request names, without what the owner planted."""
    counts = Counter((connection, name) for connection, name, _ in planted)
    connections = tuple(
        c for c in snapshot.connections() if connection_id in (None, c.connection_id)
    )
    wanted = {c.connection_id for c in connections}
    streams = tuple(
        replace(found, record_count=found.record_count - counts[found.connection_id, found.stream])
        for found in snapshot.stored_streams()
        if found.connection_id in wanted and stream in (None, found.stream)
    )
    return Extent(connections, streams, planted)


def export_lines(
    snapshot: ReadSnapshot, extent: Extent, now_ns: int, sign: SignExport = unsigned
) -> Iterator[bytes]:
    """The export as lines, in chunks.

    Shapes: a header; ingest lines with `stream` and `connection_id`; an end with the number of
        records and the SHA-256 of everything before it.
    """
    digest = hashlib.sha256()
    count = 0
    header = {
        "object": "export",
        "format_version": FORMAT_VERSION,
        "exported_at": render_instant(now_ns),
        "connections": [_connection(connection) for connection in extent.connections],
        "declarations": [orjson.Fragment(each.raw) for each in _declarations(snapshot, extent)],
    }
    waiting = [_line(header)]
    waiting_bytes = len(waiting[0])
    for stored in extent.streams:
        of_stream = {"stream": stored.stream, "connection_id": stored.connection_id}
        for row in extent.rows(snapshot, stored):
            waiting.append(_line({**of_stream, **_ingest_line(row)}))
            waiting_bytes += len(waiting[-1])
            count += 1
            if waiting_bytes >= CHUNK_BYTES:
                chunk = b"".join(waiting)
                digest.update(chunk)
                yield chunk
                waiting, waiting_bytes = [], 0
    rest = b"".join(waiting)
    digest.update(rest)
    sha256 = digest.hexdigest()
    yield rest + _line({**_end(count, sha256, snapshot.damaged), **sign(sha256)})


class ExportArchive:
    """An archive under way: its records come from one state of the store, the rest after them.

    Shapes: the last member has the number of records and one SHA-256 over the lines
        `SHA-256, two spaces, name` of all members before it, as `sha256sum` writes them.
    """

    def __init__(self, now_ns: int, form: ArchiveForm = "tar", sign: SignExport = unsigned) -> None:
        self._now_ns = now_ns
        self._sign = sign
        self._write = _TarMembers(now_ns) if form == "tar" else _ZipMembers(now_ns)
        self._referenced: set[str] = set()
        self._record_count = 0
        self._damaged: Sequence[DamagedRow] = ()
        self._damaged_blobs: list[str] = []

    def records(self, snapshot: ReadSnapshot, extent: Extent) -> Iterator[bytes]:
        """The first part, in chunks: manifest, declarations, connections, records."""
        write = self._write
        yield from write.json(MANIFEST, _manifest(extent, self._now_ns))
        for stored in _declarations(snapshot, extent):
            yield from write.bytes(declaration_member(stored.connector_key), stored.raw)
        yield from write.json(CONNECTIONS, [_connection(c) for c in extent.connections])
        for held in extent.streams:
            lines = self._lines(extent.rows(snapshot, held))
            yield from write.lines(records_member(held.connection_id, held.stream), lines)
        self._damaged = snapshot.damaged

    def rest(self, enclosures: Enclosures, open_blob: OpenBlob) -> Iterator[bytes]:
        """What follows the records: blobs, grants, the disclosure log, the end.

        None of it needs the snapshot of the records, so that nothing is held open for it; no
        member is whole in memory.
        """
        write = self._write
        for blob_id in sorted(self._referenced):
            try:
                content = open_blob(blob_id)
            except DamagedRecord:
                self._damaged_blobs.append(blob_id)
                continue
            if content is not None:
                with content:
                    size_bytes = content.seek(0, os.SEEK_END)
                    content.seek(0)
                    yield from write.file(blob_member(blob_id), content, size_bytes)
        yield from write.json(GRANTS, list(enclosures.grants()))
        corrections = enclosures.corrections()
        if corrections != NO_CORRECTIONS:
            yield from write.json(PERSONS, _corrections(corrections))
        yield from write.lines(DISCLOSURES, map(_disclosure_line, enclosures.disclosures()))
        count, sha256 = self._record_count, write.sha256
        end = _end(count, sha256, self._damaged, self._damaged_blobs)
        yield from write.json(END, {**end, **self._sign(sha256)})
        yield write.closing()

    def _lines(self, rows: Iterable[StoredRecord]) -> Iterator[bytes]:
        for row in rows:
            self._record_count += 1
            self._referenced.update(blob_references(row.data))
            yield _line(_ingest_line(row))


class OwnerExport:
    """An export under way: the records, set aside in one state of the store, then the rest.

    `let_go` is called when the store is no longer needed for the records, however much of them was
    taken by then.
    """

    def __init__(
        self, records: Iterator[bytes], rest: Iterator[bytes], let_go: Callable[[], None]
    ) -> None:
        self._records = ScratchStream(records, let_go)
        self._rest = rest
        self._chunks = chain(self._records, rest)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return next(self._chunks)

    def close(self) -> None:
        """Release what is held, taken to the end or not."""
        self._records.close()
        close = getattr(self._rest, "close", None)
        if close is not None:
            close()


class _Members(ABC):
    """The members of an archive as bytes, and the digest of those written so far."""

    def __init__(self, now_ns: int) -> None:
        self.modified_at = now_ns // NANOSECONDS
        self._digest = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def json(self, name: str, value: object) -> Iterator[bytes]:
        return self.bytes(name, orjson.dumps(value, option=orjson.OPT_INDENT_2))

    def bytes(self, name: str, content: bytes) -> Iterator[bytes]:
        return self.file(name, io.BytesIO(content), len(content))

    def lines(self, name: str, lines: Iterable[bytes]) -> Iterator[bytes]:
        with tempfile.SpooledTemporaryFile(max_size=SPOOLED_ABOVE_BYTES) as spool:
            spool.writelines(lines)
            size_bytes = spool.tell()
            spool.seek(0)
            yield from self.file(name, spool, size_bytes)

    def file(self, name: str, content: IO[bytes], size_bytes: int) -> Iterator[bytes]:
        digest = hashlib.sha256()

        def chunks() -> Iterator[bytes]:
            while chunk := content.read(CHUNK_BYTES):
                digest.update(chunk)
                yield chunk

        yield from self._member(name, chunks(), size_bytes)
        self._digest.update(digest_line(name, digest.hexdigest()))

    @abstractmethod
    def _member(self, name: str, chunks: Iterator[bytes], size_bytes: int) -> Iterator[bytes]: ...

    @abstractmethod
    def closing(self) -> bytes: ...


class _TarMembers(_Members):
    """Header, content, padding."""

    def _member(self, name: str, chunks: Iterator[bytes], size_bytes: int) -> Iterator[bytes]:
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size_bytes, self.modified_at, 0o600
        yield member.tobuf(tarfile.PAX_FORMAT)
        yield from chunks
        if size_bytes % tarfile.BLOCKSIZE:
            yield b"\0" * (tarfile.BLOCKSIZE - size_bytes % tarfile.BLOCKSIZE)

    def closing(self) -> bytes:
        return bytes(2 * tarfile.BLOCKSIZE)


class _ZipMembers(_Members):
    """Lines are compressed; the rest is as it is, files of people mostly are compressed already."""

    def __init__(self, now_ns: int) -> None:
        super().__init__(now_ns)
        self._written = _Written()
        self._zip = zipfile.ZipFile(self._written, "w")

    def _member(self, name: str, chunks: Iterator[bytes], size_bytes: int) -> Iterator[bytes]:
        year, month, day, hour, minute, second, *_ = time.gmtime(self.modified_at)
        member = zipfile.ZipInfo(name, (max(year, 1980), month, day, hour, minute, second))
        member.external_attr = 0o600 << 16
        member.file_size = size_bytes
        if name.endswith(".ndjson"):
            member.compress_type = zipfile.ZIP_DEFLATED
        with self._zip.open(member, "w", force_zip64=True) as content:
            for chunk in chunks:
                content.write(chunk)
                yield self._written.taken()
        yield self._written.taken()

    def closing(self) -> bytes:
        self._zip.close()
        return self._written.taken()


class _Written(io.RawIOBase):
    """A file that is taken away as it is written."""

    def __init__(self) -> None:
        self._waiting = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._waiting += data
        return len(data)

    def taken(self) -> bytes:
        taken = bytes(self._waiting)
        self._waiting.clear()
        return taken


def digest_line(name: str, sha256: str) -> bytes:
    """What the last member of an archive covers of each one before it."""
    return f"{sha256}  {name}\n".encode()


def declaration_member(connector_key: str) -> str:
    """Where an archive keeps the declaration of a source."""
    return f"declarations/{connector_key}.json"


def records_member(connection_id: str, stream: str) -> str:
    """Where an archive keeps the records of a stream of a connection."""
    return f"records/{connection_id}/{stream}.ndjson"


def blob_member(blob_id: str) -> str:
    """Where an archive keeps the bytes of a blob."""
    return BLOB_FOLDER + blob_id.removeprefix(BLOB_PREFIX)


def _declarations(snapshot: ReadSnapshot, extent: Extent) -> Iterator[StoredDeclaration]:
    keys = {connection.connector_key for connection in extent.connections}
    return (stored for stored in snapshot.declarations() if stored.connector_key in keys)


def stored_grants(authorization: AuthorizationStore) -> list[Json]:
    """Every grant as it was agreed, with its end if it has one."""
    with authorization.read() as reader:
        return [_grant(row) for row in reader.rows(GrantRow)]


def _grant(row: GrantRow) -> Json:
    revoked_ns = row.revoked_at_ns
    return {
        "grant_id": row.grant_id,
        "client_id": row.client_id,
        "connector_key": row.connector_key,
        "issued_at": render_instant(row.issued_at_ns),
        "revoked_at": None if revoked_ns is None else render_instant(revoked_ns),
        "reason": row.reason,
        "grant": row.grant.decode("utf-8", "replace"),
    }


def _corrections(found: Corrections) -> dict[str, object]:
    """As `Corrections` is read back."""
    pairs = [[list(one), list(other)] for one, other in sorted(found.merged)]
    return {"merged": pairs, "parted": [list(each) for each in sorted(found.parted)]}


def _manifest(extent: Extent, now_ns: int) -> dict[str, object]:
    return {
        "object": "export",
        "format_version": FORMAT_VERSION,
        "exported_at": render_instant(now_ns),
        "streams": [
            {
                "connection_id": stored.connection_id,
                "connector_key": stored.connector_key,
                "stream": stored.stream,
                "record_count": stored.record_count,
            }
            for stored in extent.streams
        ],
    }


def _connection(connection: Connection) -> dict[str, object]:
    return {
        "connection_id": connection.connection_id,
        "connector_key": connection.connector_key,
        "source_id": connection.source_id,
        "display_name": connection.display_name,
        "status": connection.status.value,
        "created_at": instant_text(connection.created_at_ns),
    }


def _end(
    record_count: int, sha256: str, damaged: Sequence[DamagedRow], blob_ids: Sequence[str] = ()
) -> dict[str, object]:
    """What an export ends with; what it lacks since its bytes are damaged is named."""
    end: dict[str, object] = {
        "object": "export_end",
        "record_count": record_count,
        "sha256": sha256,
    }
    if damaged:
        end["damaged_records"] = [_left_out(row) for row in damaged]
    if blob_ids:
        end["damaged_blobs"] = list(blob_ids)
    return end


def _left_out(row: DamagedRow) -> dict[str, str]:
    of_stream = {"connection_id": row.connection_id, "stream": row.stream}
    return of_stream if row.key is None else {**of_stream, "record_id": row.key}


def _ingest_line(row: StoredRecord) -> dict[str, object]:
    changes = [row.created, *row.field_changes.values()]
    newest = max(changes, key=lambda change: change.sequence)
    return {"key": row.key, "data": row.data, "emitted_at": instant_text(newest.emitted_at_ns)}


def _disclosure_line(disclosure: ShownDisclosure) -> bytes:
    return msgspec.json.encode(disclosure) + b"\n"


def _line(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
