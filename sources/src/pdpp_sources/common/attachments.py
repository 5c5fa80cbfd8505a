"""Give a record the file it speaks of, or say why it comes without."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from mimetypes import MimeTypes

from msgspec.structs import replace

from pdpp_kernel.source_item import (
    LARGEST_BLOB_BYTES,
    Skipped,
    SourceBlob,
    SourceItem,
    SourceRecord,
    blob_of_bytes,
    blob_of_stream,
)
from pdpp_sources.common.errors import MemberDamaged
from pdpp_sources.common.export import ExportMember

_NEWER = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".epub": "application/epub+zip",
    ".webp": "image/webp",
    ".heic": "image/heic",
    ".heif": "image/heif",
    ".avif": "image/avif",
    ".m4a": "audio/mp4",
    ".amr": "audio/amr",
    ".ogg": "audio/ogg",
    ".opus": "audio/opus",
    ".md": "text/markdown",
}
# What every Python knows, and no more: what a machine adds would change records between machines.
_KINDS = MimeTypes()
for _ending, _kind in _NEWER.items():
    _KINDS.add_type(_kind, _ending)
UNKNOWN_KIND = "application/octet-stream"


def kind_of(filename: str | None) -> str | None:
    """The MIME type that a file's ending stands for."""
    return _KINDS.guess_type(filename or "", strict=False)[0]


def is_media(name: str) -> bool:
    """Whether a file is a picture, recording or document, by its ending."""
    return (kind_of(name) or "").startswith(("image/", "video/", "audio/", "application/pdf"))


def with_decoded(record: SourceRecord, content: str, where: str) -> Iterator[SourceItem]:
    """The record with what base64 says of its file; without it, and a report, if that fails.

    Shapes: the record has `filename`, `mime_type` and `size_bytes`.
    """
    code = "damaged_file" if content else "missing_attachment"
    if len(content) > LARGEST_BLOB_BYTES * 4 // 3:
        code = "attachment_too_large"
    elif decoded := _decoded(content):
        kind = record.data["mime_type"] or UNKNOWN_KIND
        yield _holding(record, blob_of_bytes(decoded, kind, record.data["filename"]))
        return
    yield from _lacking(record, code, where)


def _decoded(content: str) -> bytes:
    try:
        return b64decode(content, validate=False)
    except ValueError:
        return b""


def _holding(record: SourceRecord, blob: SourceBlob) -> SourceRecord:
    facts = {"size_bytes": blob.size_bytes, "blob_ref": blob.value}
    return replace(record, data=record.data | facts, blobs=(blob,))


def _lacking(record: SourceRecord, code: str, where: str) -> Iterator[SourceItem]:
    yield record
    yield Skipped(where, code, "the attachment was recorded without its content", record.position)


def with_file(record: SourceRecord, member: ExportMember | None) -> Iterator[SourceItem]:
    """The record with the member's bytes in `blob_ref`; without them, and a report, if they fail.

    Shapes: the record has `filename`, `mime_type` and `size_bytes`.
    """
    blob, code = None, "missing_attachment"
    if member is not None:
        try:
            if member.size_bytes > LARGEST_BLOB_BYTES:
                member.exact().close()  # opened, it is not reported as unmentioned
                code = "attachment_too_large"
            else:
                kind = record.data["mime_type"] or UNKNOWN_KIND
                blob = blob_of_stream(member.exact, kind, record.data["filename"])
        except MemberDamaged:
            code = "damaged_file"
    if blob is not None:
        yield _holding(record, blob)
        return
    yield from _lacking(record, code, member.name if member else record.stream)
