"""Exporting: everything the owner has, as lines or as an archive, from one snapshot.

Rule: what is exported can be ingested again; a stream of lines without its last line is incomplete.
Source: docs/contract/resource-server.md 14.4.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import IO, BinaryIO, cast

import msgspec
import orjson

from personal_server.domain.connection import Connection
from personal_server.domain.record import StoredRecord
from personal_server.domain.values import NANOSECONDS, render_instant
from personal_server.reading.disclosure_log import ShownDisclosure
from personal_server.reading.scratch import ScratchStream
from personal_server.storage.authorization import AuthorizationStore, GrantRow
from personal_server.storage.ports import ReadSnapshot, StoredStream

CHUNK_BYTES = 64 * 1024
SPOOLED_ABOVE_BYTES = 4 * 1024 * 1024
BLOB_PREFIX = "blob_sha256_"
FORMAT_VERSION = "1"

Json = Mapping[str, object]


OpenBlob = Callable[[str], BinaryIO | None]
"""The bytes of a blob id, seekable; `None` when nobody holds them."""


@dataclass(frozen=True, slots=True)
class Enclosures:
    """What an archive holds beside records: grants as agreed, the disclosure log."""

    grants: Callable[[], Iterable[Json]] = lambda: ()
    disclosures: Callable[[], Iterable[ShownDisclosure]] = lambda: ()


@dataclass(frozen=True, slots=True)
class Extent:
    """What is exported: the connections and their streams, declared today or not."""

    connections: tuple[Connection, ...]
    streams: tuple[StoredStream, ...]


def extent_of(snapshot: ReadSnapshot, connection_id: str | None, stream: str | None) -> Extent:
    """The part of the store that a request names."""
    connections = tuple(
        c for c in snapshot.connections() if connection_id in (None, c.connection_id)
    )
    wanted = {c.connection_id for c in connections}
    streams = tuple(
        found
        for found in snapshot.stored_streams()
        if found.connection_id in wanted and stream in (None, found.stream)
    )
    return Extent(connections, streams)


def export_lines(snapshot: ReadSnapshot, extent: Extent, now_ns: int) -> Iterator[bytes]:
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
    }
    waiting = [_line(header)]
    waiting_bytes = len(waiting[0])
    for stored in extent.streams:
        place = {"stream": stored.stream, "connection_id": stored.connection_id}
        for row in snapshot.export(stored.connection_id, stored.stream):
            waiting.append(_line({**place, **_ingest_line(row)}))
            waiting_bytes += len(waiting[-1])
            count += 1
            if waiting_bytes >= CHUNK_BYTES:
                chunk = b"".join(waiting)
                digest.update(chunk)
                yield chunk
                waiting, waiting_bytes = [], 0
    rest = b"".join(waiting)
    digest.update(rest)
    end = {"object": "export_end", "record_count": count, "sha256": digest.hexdigest()}
    yield rest + _line(end)


def archived_records(
    snapshot: ReadSnapshot, extent: Extent, referenced: set[str], now_ns: int
) -> Iterator[bytes]:
    """The first part of a tar archive, in chunks: manifest, declarations, connections, records.

    Shapes: `referenced` is filled with the blobs that the records reference.
    """
    write = _Members(now_ns)
    yield from write.json("manifest.json", _manifest(extent, now_ns))
    keys = {connection.connector_key for connection in extent.connections}
    for stored in snapshot.declarations():
        if stored.connector_key in keys:
            yield from write.bytes(f"declarations/{stored.connector_key}.json", stored.raw)
    yield from write.json("connections.json", [_connection(c) for c in extent.connections])
    for held in extent.streams:
        rows = snapshot.export(held.connection_id, held.stream)
        name = f"records/{held.connection_id}/{held.stream}.ndjson"
        yield from write.lines(name, (_line(_noted(row, referenced)) for row in rows))


def archived_enclosures(
    referenced: set[str], enclosures: Enclosures, open_blob: OpenBlob, now_ns: int
) -> Iterator[bytes]:
    """The rest of the archive: blobs, grants, the disclosure log; no member is whole in memory.

    None of it needs the snapshot of the records, so that nothing is held open for it.
    """
    write = _Members(now_ns)
    for blob_id in sorted(referenced):
        content = open_blob(blob_id)
        if content is not None:
            with content:
                size_bytes = content.seek(0, os.SEEK_END)
                content.seek(0)
                name = f"blobs/{blob_id.removeprefix(BLOB_PREFIX)}"
                yield from write.file(name, content, size_bytes)
    yield from write.json("grants.json", list(enclosures.grants()))
    yield from write.lines("disclosures.ndjson", map(_disclosure_line, enclosures.disclosures()))
    yield bytes(2 * tarfile.BLOCKSIZE)


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


class _Members:
    """The members of an archive as bytes: header, content, padding."""

    def __init__(self, now_ns: int) -> None:
        self._modified_at = now_ns // NANOSECONDS

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
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = size_bytes, self._modified_at, 0o600
        yield member.tobuf(tarfile.PAX_FORMAT)
        while chunk := content.read(CHUNK_BYTES):
            yield chunk
        if size_bytes % tarfile.BLOCKSIZE:
            yield b"\0" * (tarfile.BLOCKSIZE - size_bytes % tarfile.BLOCKSIZE)


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
        "created_at": render_instant(connection.created_at_ns),
    }


def _ingest_line(row: StoredRecord) -> dict[str, object]:
    changes = [row.created, *row.field_changes.values()]
    newest = max(changes, key=lambda change: change.sequence)
    return {"key": row.key, "data": row.data, "emitted_at": render_instant(newest.emitted_at_ns)}


def _noted(row: StoredRecord, referenced: set[str]) -> dict[str, object]:
    """The line of a row; the blobs it references are noted."""
    for value in row.data.values():
        if isinstance(value, dict):
            blob_id = cast(dict[str, object], value).get("blob_id")
            if isinstance(blob_id, str) and blob_id.startswith(BLOB_PREFIX):
                referenced.add(blob_id)
    return _ingest_line(row)


def _disclosure_line(disclosure: ShownDisclosure) -> bytes:
    return msgspec.json.encode(disclosure) + b"\n"


def _line(value: Json) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
