"""What a reader yields: records with their blobs, and a report of what it passed over."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from enum import StrEnum
from typing import Any, BinaryIO

import msgspec

from pdpp_kernel.unprinted import Unprinted

Json = Any
Data = dict[str, Json]

# The fields of a record with a file that an import fills in when it has read the file.
TEXT, TEXT_STATE = "text", "text_state"
LARGEST_BLOB_BYTES = 50 * 1024 * 1024


class SourceBlob(Unprinted, frozen=True):
    """Bytes that a record points to, named by their content.

    Source: docs/contract/resource-server.md 12 (blob field, content address).
    """

    json_path: str
    mime_type: str
    sha256: str
    size_bytes: int
    filename: str | None
    open: Callable[[], BinaryIO]

    @property
    def blob_id(self) -> str:
        """The blob's id, made from its bytes: equal bytes have one id."""
        return f"blob_sha256_{self.sha256}"

    @property
    def value(self) -> Data:
        """The value of the blob field in its record."""
        value: Data = {
            "blob_id": self.blob_id,
            "mime_type": self.mime_type,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
        }
        return value | ({"filename": self.filename} if self.filename else {})


class ThreadLinks(msgspec.Struct, frozen=True):
    """What puts a record into one thread with others, whichever of them was imported first.

    It joins the thread of every record that left a mark it looks for, and leaves marks itself.

    Shapes: marks are digests, which tell nothing of what they stand for.
    Units: `at` (where a mark is left), `since` and `until` (between which it counts, both
        inclusive) in seconds; 0 for marks that time does not matter to.
    """

    looks: tuple[tuple[str, int, int], ...]  # mark, since, until
    leaves: tuple[tuple[str, int], ...]  # mark, at


class SourceRecord(msgspec.Struct, frozen=True):
    """One record of one stream.

    Shapes: a record with `thread` has a `thread_id`: that of the thread it would begin.
    Units: `position` is where in the export the part begins that this record was read from;
    positions never fall, and reading again from one repeats at most that part.
    """

    stream: str
    data: Data
    position: int
    blobs: tuple[SourceBlob, ...] = ()
    thread: ThreadLinks | None = None


class Skipped(msgspec.Struct, frozen=True):
    """Something that was not read: where, a stable code, and a reason without any content."""

    where: str
    code: str
    reason: str
    position: int


SourceItem = SourceRecord | Skipped


class TextState(StrEnum):
    """Whether the text of a file was read, or why there is none; the words of `text_state`."""

    WAITING = "waiting"  # stored, and not looked at yet
    READ = "read"
    CUT = "cut"  # its first part only: it is longer, or takes longer, than any file should
    EMPTY = "empty"  # nothing is written in it
    NO_WORDS = "no_words"  # a PDF without text, in whose pictures no words were found
    PICTURES_UNREAD = "pictures_unread"  # read but for its pictures, for which Tesseract is missing
    OTHER_KIND = "other_kind"  # a kind of which no text is read
    ENCRYPTED = "encrypted"
    DAMAGED = "damaged_file"  # `text` holds what could be read
    TOO_COSTLY = "too_costly"


class FileText(msgspec.Struct, frozen=True):
    """What a file says."""

    state: TextState
    text: str | None = None


def blob_of_bytes(
    content: bytes, mime_type: str, filename: str | None, json_path: str = "/blob_ref"
) -> SourceBlob:
    """A blob whose bytes are at hand."""
    sha256 = hashlib.sha256(content).hexdigest()
    return SourceBlob(
        json_path, mime_type, sha256, len(content), filename, lambda: io.BytesIO(content)
    )


def blob_of_stream(
    opener: Callable[[], BinaryIO],
    mime_type: str,
    filename: str | None,
    json_path: str = "/blob_ref",
) -> SourceBlob:
    """A blob that is read twice: once here for its address, once by whoever stores it."""
    digest, size = hashlib.sha256(), 0
    with opener() as stream:
        while chunk := stream.read(262_144):
            digest.update(chunk)
            size += len(chunk)
    return SourceBlob(json_path, mime_type, digest.hexdigest(), size, filename, opener)


_IN_BYTES = (bytes, memoryview)


def stable_id(prefix: str, *parts: str | bytes | memoryview | int | None) -> str:
    """A short id over the parts, the same on every machine and in every year.

    Their order and their bounds count.
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, _IN_BYTES):  # may be long, and is not copied
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
        else:
            content = str(part).encode("utf-8", "surrogatepass")
            digest.update(len(content).to_bytes(8, "big") + content)
    return f"{prefix}_{digest.hexdigest()[:24]}"
