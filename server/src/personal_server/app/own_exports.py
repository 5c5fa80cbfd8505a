"""The owner's export, come back: a file that `reading/export.py` wrote, proved whole, then stored.

Rule: nothing is stored before the file is read to its end and proved complete.  What the server
says already stays: its declarations, the status of its connections.
Source: docs/contract/resource-server.md 14.4.
Raises: ExportTruncated, ExportNotRecognized, ExportUnsafe.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, BinaryIO, Protocol, cast

import msgspec

from pdpp_kernel.persons import NO_CORRECTIONS, Corrections
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.source_item import Data
from pdpp_kernel.values import instant_ns
from pdpp_sources.common.archive import check_directory, safe_entries
from pdpp_sources.common.errors import ExportNotRecognized, ExportTruncated
from pdpp_sources.export_files import open_file
from personal_server.collecting.imports import BLOB_CHUNK_BYTES
from personal_server.collecting.ingest import MAX_LINE_BYTES
from personal_server.domain.connection import ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.reading.export import (
    BLOB_FOLDER,
    CONNECTIONS,
    DISCLOSURES,
    END,
    FORMAT_VERSION,
    GRANTS,
    PERSONS,
    blob_member,
    declaration_member,
    digest_line,
    records_member,
)
from personal_server.reading.export_names import MANIFEST
from personal_server.upkeep.backup_signatures import signer_of_export

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
"""Of all documents of an export together, which are in memory at once."""
LONGEST_LINE_BYTES = MAX_LINE_BYTES + 64 * 1024  # an export adds stream and connection to a line
_PACKED_BY = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # others take memory as a file says
_LAST_LINE = b'{"object":"export_end",'

Line = tuple[str, str, bytes]
"""`connection_id`, stream, and an ingest line."""


class ExportedConnection(msgspec.Struct):
    """A connection as an export names it."""

    connection_id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,128}$")]
    connector_key: str
    display_name: str | None
    status: ConnectionStatus
    created_at: str

    @property
    def created_at_ns(self) -> int:
        """When its owner made it."""
        moment = instant_ns(self.created_at)
        if moment is None:
            raise _incomplete()
        return moment


class _Document(msgspec.Struct):
    object: str
    format_version: str


class _LinesHeader(_Document):
    connections: list[ExportedConnection]
    declarations: list[msgspec.Raw]


class _ManifestStream(msgspec.Struct):
    connection_id: str
    stream: str


class _Manifest(_Document):
    streams: list[_ManifestStream]


class _End(msgspec.Struct):
    record_count: int
    sha256: str
    signer: str = ""
    signature: str = ""

    def covers(self, record_count: int, sha256: str) -> bool:
        return (self.record_count, self.sha256) == (record_count, sha256)

    @property
    def proven_signer(self) -> str | None:
        return signer_of_export(self.sha256, self.signer, self.signature)


class OwnExport(msgspec.Struct, frozen=True):
    """An export that is complete; `records` and `open_blob` read its file again.

    Shapes: `signer` is the key of the server that made it, None where nobody signed it.
    """

    connections: Mapping[str, ExportedConnection]
    declarations: Mapping[str, SourceDeclaration]
    records: Callable[[], Iterator[Line]]
    open_blob: Callable[[str], IO[bytes] | None]
    grants: list[Data] = msgspec.field(default_factory=list[Data])
    disclosure_count: int = 0
    corrections: Corrections = NO_CORRECTIONS
    signer: str | None = None

    def declaration_of(self, connection_id: str) -> SourceDeclaration:
        """What the export says of a connection's source."""
        return self.declarations[self.connections[connection_id].connector_key]


@contextmanager
def open_own_export(path: Path, within: Path | None = None) -> Generator[OwnExport]:
    """Read a file to its end, prove it complete, and keep it open; `within` as in `open_file`."""
    with open_file(path, within) as file:
        try:
            export = _of_lines(file) if file.read(1) == b"{" else _of_archive(file)
        except (
            *(msgspec.MsgspecError, tarfile.TarError, zipfile.BadZipFile, zlib.error),
            *(EOFError, KeyError, ValueError, struct.error),
        ):
            raise _incomplete() from None
        except OSError as error:
            if error.errno != errno.EINVAL:  # a place before its begin; else the disk failed
                raise
            raise _incomplete() from None
        yield export


def _incomplete() -> ExportTruncated:
    return ExportTruncated(
        (
            "This file is an export of this program, but is cut short or was changed; "
            "nothing in the file was imported."
        ),
        "Copy the export again, or make a new export with `pdpp export`.",
    )


def _require(complete: bool) -> None:
    if not complete:
        raise _incomplete()


def _require_version(document: _Document) -> None:
    if document.format_version != FORMAT_VERSION:
        raise ExportNotRecognized(
            "Another version of this program made this export.",
            "Update this program, and import the export again.",
        )


def _by_id(connections: list[ExportedConnection]) -> dict[str, ExportedConnection]:
    return {connection.connection_id: connection for connection in connections}


def _by_key(
    documents: Iterable[bytes | msgspec.Raw], connections: Mapping[str, ExportedConnection]
) -> dict[str, SourceDeclaration]:
    """The declarations; every connection has one."""
    declarations = [parse_declaration(bytes(document)) for document in documents]
    by_key = {declaration.connector_key: declaration for declaration in declarations}
    _require(all(connection.connector_key in by_key for connection in connections.values()))
    return by_key


def _lines_in(content: IO[bytes]) -> Iterator[bytes]:
    while line := content.readline(LONGEST_LINE_BYTES):
        _require(line.endswith(b"\n"))
        yield line


# Lines: a header, records, and an end with the digest of everything before it.


def _of_lines(file: IO[bytes]) -> OwnExport:
    file.seek(0)
    first = file.readline(MAX_DOCUMENT_BYTES)
    header = msgspec.json.decode(first, type=_LinesHeader)
    _require_version(header)
    connections = _by_id(header.connections)
    digest, count, end = hashlib.sha256(first), 0, None
    for line in _lines_in(file):
        _require(end is None)
        if line.startswith(_LAST_LINE):
            end = msgspec.json.decode(line, type=_End)
            continue
        digest.update(line)
        count += 1
        _require(msgspec.json.decode(line, type=_ManifestStream).connection_id in connections)
    _require(end is not None and end.covers(count, digest.hexdigest()))
    signer = None if end is None else end.proven_signer

    def records() -> Iterator[Line]:
        file.seek(len(first))
        for line in _lines_in(file):
            if not line.startswith(_LAST_LINE):
                stream = msgspec.json.decode(line, type=_ManifestStream)
                yield stream.connection_id, stream.stream, line

    declarations = _by_key(header.declarations, connections)
    return OwnExport(connections, declarations, records, _no_blob, signer=signer)


def _no_blob(blob_id: str) -> None:
    del blob_id


# Archives: the last member has the digest of all before it.


class _Archive(Protocol):
    def members(self) -> Iterator[tuple[str, IO[bytes]]]:
        """Every member once, in order."""
        ...

    def open(self, name: str) -> IO[bytes] | None:
        """A member that was passed."""
        ...


class _Tar:
    """Members are remembered by name, place and size only: there may be very many."""

    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 (the file is its caller's)
        self._places: dict[str, tuple[int, int]] = {}

    def members(self) -> Iterator[tuple[str, IO[bytes]]]:
        while (member := self._tar.next()) is not None:
            _require(member.type == tarfile.REGTYPE and member.name not in self._places)
            self._places[member.name] = (member.offset_data, member.size)
            content = self.open(member.name)
            _require(content is not None)
            yield member.name, cast("IO[bytes]", content)
            self._tar.members.clear()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] (typeshed leaves it out)

    def open(self, name: str) -> IO[bytes] | None:
        if name not in self._places:
            return None
        member = tarfile.TarInfo(name)
        member.offset_data, member.size = self._places[name]
        return self._tar.extractfile(member)


class _Zip:
    """Held to what any archive is, and to how ours are packed: this process is not confined.

    Raises: ExportUnsafe.
    """

    def __init__(self, file: IO[bytes]) -> None:
        check_directory(cast("BinaryIO", file), file.seek(0, os.SEEK_END))
        self._zip = zipfile.ZipFile(file)
        self._entries, refused = safe_entries(self._zip)
        self._names = frozenset(entry.filename for entry in self._entries)
        _require(not refused and len(self._entries) == len(self._zip.infolist()))
        _require({entry.compress_type for entry in self._entries} <= _PACKED_BY)

    def members(self) -> Iterator[tuple[str, IO[bytes]]]:
        for member in self._entries:
            with self._zip.open(member) as content:
                yield member.filename, content

    def open(self, name: str) -> IO[bytes] | None:
        return self._zip.open(name) if name in self._names else None


def _of_archive(file: IO[bytes]) -> OwnExport:
    file.seek(0)
    archive: _Archive = _Zip(file) if file.read(2) == b"PK" else _rewound(file)
    documents, line_counts, sha256 = _walk(archive)
    manifest = msgspec.json.decode(documents[MANIFEST], type=_Manifest)
    _require_version(manifest)
    connections = _by_id(msgspec.json.decode(documents[CONNECTIONS], type=list[ExportedConnection]))
    streams = [(stream.connection_id, stream.stream) for stream in manifest.streams]
    _require(all(connection_id in connections for connection_id, _ in streams))
    count = sum(line_counts[records_member(*stream)] for stream in streams)
    end = msgspec.json.decode(documents[END], type=_End)
    _require(end.covers(count, sha256))

    def records() -> Iterator[Line]:
        for stream in streams:
            content = archive.open(records_member(*stream))
            for line in _lines_in(content) if content else ():
                yield *stream, line

    keys = {connection.connector_key for connection in connections.values()}
    return OwnExport(
        connections,
        _by_key((documents[declaration_member(key)] for key in keys), connections),
        records,
        lambda blob_id: archive.open(blob_member(blob_id)),
        msgspec.json.decode(documents[GRANTS], type=list[Data]),
        line_counts[DISCLOSURES],
        msgspec.json.decode(documents.get(PERSONS, b"{}"), type=Corrections),
        end.proven_signer,
    )


def _rewound(file: IO[bytes]) -> _Tar:
    file.seek(0)
    return _Tar(file)


def _walk(archive: _Archive) -> tuple[dict[str, bytes], dict[str, int], str]:
    """The documents, how many lines each file of lines has, and the digest before the end."""
    documents: dict[str, bytes] = {}
    line_counts: dict[str, int] = {}
    digest, room = hashlib.sha256(), MAX_DOCUMENT_BYTES
    for name, content in archive.members():
        _require(END not in documents)
        own = hashlib.sha256()
        if name.endswith(".json"):
            documents[name] = content.read(room + 1)
            room -= len(documents[name])
            _require(room >= 0)
            own.update(documents[name])
        else:
            lines = 0
            while chunk := content.read(BLOB_CHUNK_BYTES):
                own.update(chunk)
                lines += chunk.count(b"\n")
            if name.startswith(BLOB_FOLDER):
                _require(name == BLOB_FOLDER + own.hexdigest())
            else:
                line_counts[name] = lines
        if name != END:
            digest.update(digest_line(name, own.hexdigest()))
    return documents, line_counts, digest.hexdigest()
