"""Blobs: bytes out through a visible record, bytes in by the owner.

Source: docs/contract/resource-server.md 12.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Annotated, BinaryIO, ClassVar
from urllib.parse import quote

import msgspec

from pdpp_kernel.errors import (
    AmbiguousConnection,
    BlobNotFound,
    ConnectionNotFound,
    ConnectionNotWritable,
    DamagedRecord,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidRequest,
    NotFound,
    RangeNotSatisfiable,
)
from pdpp_kernel.wire_objects import Count, Sha256, WireObject, Word
from personal_server.domain.disclosure import Disclosed
from personal_server.enforcement.authorize import authorize_blob
from personal_server.enforcement.queries import BlobQuery
from personal_server.enforcement.rows import BlobReference
from personal_server.reading.ports import ReadPorts
from personal_server.resource_server.read_queries import (
    selectors_of,
    snapshot_of,
)
from personal_server.resource_server.write_targets import (
    CONNECTION_TARGET,
    check_writable,
    declaration_of,
    declared_stream,
    target_of,
)
from personal_server.storage.damage import MEND_RECORDS
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS
from personal_server.web.byte_ranges import CHUNK_BYTES, FilePart, asked_range
from personal_server.web.parameters import SELECTORS, Parameter
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import BodyRule, Caching, Route, collector

OCTETS = "application/octet-stream"
INLINE = frozenset(
    {
        *(f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "avif", "bmp", "tiff")),
        "application/pdf",
    }
)
UPLOAD = (
    *CONNECTION_TARGET,
    Parameter("stream", "The stream of the record.", required=True),
    Parameter("record_key", "The key of the record that references the blob.", required=True),
    Parameter("json_path", "Where in the record: a JSON Pointer.", default="/blob_ref"),
    Parameter("mime_type", "The media type; else the Content-Type of the call."),
)
_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\Z")


class ShownBlob(WireObject, tag_field="object", tag="blob"):
    """Bytes that were stored."""

    component: ClassVar = "Blob"
    example: ClassVar = {
        "object": "blob",
        "blob_id": "blob_sha256_" + "2c" * 32,
        "sha256": "2c" * 32,
        "size_bytes": 3,
        "mime_type": "text/plain",
    }

    blob_id: Annotated[str, msgspec.Meta(pattern="^blob_sha256_[0-9a-f]{64}$")]
    sha256: Sha256
    size_bytes: Count
    mime_type: Word


class Blobs:
    """The routes of one store."""

    def __init__(
        self, ports: ReadPorts, declarations: KnownDeclarations, max_blob_bytes: int
    ) -> None:
        self._ports = ports
        self._declarations = declarations
        self._max_blob_bytes = max_blob_bytes

    def routes(self) -> tuple[Route, ...]:
        """The routes that fetch a blob and upload one."""
        fetched = Route(
            "GET",
            "/v1/blobs/{blob_id}",
            self.fetch,
            "The bytes of a blob that a visible record references.",
            "12.1",
            parameters=SELECTORS,
            media_types=("*/*",),
            also={206: None},
            errors=(
                BlobNotFound,
                ConnectionNotFound,
                AmbiguousConnection,
                GrantRevoked,
                GrantExpired,
                GrantInvalid,
                RangeNotSatisfiable,
                DamagedRecord,
            ),
            cors=True,
            caching=Caching.REVALIDATE,
            etag=True,
            has_deadline=False,
        )
        uploaded = Route(
            "POST",
            "/v1/blobs",
            self.upload,
            "Uploads bytes for a record of a connection.",
            "12.2",
            parameters=UPLOAD,
            body=BodyRule(
                media_types=(),
                limit_bytes=self._max_blob_bytes,
                schema={"type": "string", "format": "binary"},
                spooled=True,
            ),
            answer=ShownBlob,
            also={201: ShownBlob},
            errors=(ConnectionNotFound, NotFound, ConnectionNotWritable),
            has_deadline=False,
        )
        return fetched, collector(uploaded)

    def fetch(self, request: Request) -> Reply:
        """`GET /v1/blobs/{blob_id}`."""
        blob_id = request.path["blob_id"]
        parameters = request.parameters
        selectors = selectors_of(parameters)
        read = authorize_blob(request.authority, BlobQuery(blob_id, selectors))
        references = snapshot_of(request).blob(read.plan)
        content = self._ports.store.open_blob(blob_id) if references else None
        if not references and snapshot_of(request).damaged:
            raise DamagedRecord(MEND_RECORDS, param="blob_id")
        if content is None:
            raise BlobNotFound("There is no such blob here.", param="blob_id")
        found = references[0]
        source = next(
            s
            for s in read.sources
            if s.connection_id == found.connection_id and s.stream == found.stream
        )
        try:
            return _served(request, content, found, [Disclosed(source, (found.field,), 0)])
        except RangeNotSatisfiable:
            content.close()
            raise

    def upload(self, request: Request) -> Reply:
        """`POST /v1/blobs`."""
        parameters = request.parameters
        if not str(parameters.texts.get("json_path")).startswith("/"):
            raise InvalidRequest("'json_path' is a JSON Pointer.", param="json_path")
        mime_type = _mime_type(
            parameters.texts.get("mime_type"), request.headers.get("content-type")
        )
        with self._ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            connection = target_of(request, snapshot)
            declaration = declaration_of(snapshot, self._declarations, connection)
        declared_stream(declaration, str(parameters.texts.get("stream")), "stream")
        check_writable(connection)
        upload, is_new = self._ports.store.receive_blob(
            connection.connection_id,
            _chunks(request.spool),
            mime_type,
            request.now_ns,
            self._max_blob_bytes,
        )
        body = ShownBlob(
            blob_id=upload.blob_id,
            sha256=_sha256(upload.blob_id),
            size_bytes=upload.size_bytes,
            mime_type=upload.mime_type,
        )
        return Reply(body, status=201 if is_new else 200)


def _served(
    request: Request, content: BinaryIO, found: BlobReference, disclosed: list[Disclosed]
) -> Reply:
    size_bytes = content.seek(0, os.SEEK_END)
    etag = f'"sha256-{_sha256(request.path["blob_id"])}"'
    part = asked_range(request.headers, etag, size_bytes) if request.method == "GET" else None
    mime_type = _known_type(found.reference.get("mime_type"))
    headers = [
        ("Accept-Ranges", "bytes"),
        ("Content-Disposition", _disposition(mime_type, found.reference.get("filename"))),
        ("Content-Security-Policy", "sandbox; default-src 'none'"),
    ]
    if part is not None:
        headers.append(("Content-Range", f"bytes {part.start}-{part.stop - 1}/{size_bytes}"))
    sent = range(size_bytes) if part is None else part
    return Reply(
        status=200 if part is None else 206,
        chunks=FilePart(content, sent),
        length_bytes=len(sent),
        content_type=mime_type,
        headers=tuple(headers),
        etag=etag,
        disclosed=disclosed,
    )


def _disposition(mime_type: str, filename: object) -> str:
    kind = "inline" if mime_type in INLINE else "attachment"
    if not isinstance(filename, str) or not filename:
        return kind
    return f"{kind}; filename*=UTF-8''{quote(filename.encode('utf-8', 'replace'), safe='')}"


def _known_type(value: object) -> str:
    """The reference's media type if it is one, else bytes."""
    text = value.lower() if isinstance(value, str) else ""
    return text if _MEDIA_TYPE.match(text) else OCTETS


def _mime_type(named: str | None, content_type: str | None) -> str:
    text = (named or (content_type or OCTETS).partition(";")[0]).strip().lower()
    if _MEDIA_TYPE.match(text) is None:
        raise InvalidRequest(
            "'mime_type' must be a media type such as image/png.", param="mime_type"
        )
    return text


def _chunks(spool: BinaryIO | None) -> Iterator[bytes]:
    while spool is not None and (chunk := spool.read(CHUNK_BYTES)):
        yield chunk


def _sha256(blob_id: str) -> str:
    return blob_id.removeprefix("blob_sha256_")
