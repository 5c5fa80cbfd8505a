"""An export as its owner has it: one file, a folder, or a zip that is read in place.

The one rule: bytes are only ever streamed out of a member. Nothing is extracted, no symbolic link
is followed, no name leads out of the export, and no archive unpacks to more than its bounds.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import stat
import struct
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import BinaryIO, Self, cast

from personal_server.domain.source_item import Data, Skipped
from personal_server.sources.common.archive import check_directory, safe_entries
from personal_server.sources.common.bookmark import BOOKMARK
from personal_server.sources.common.errors import (
    ExportNotFound,
    ExportTruncated,
    ExportUnreadable,
    MemberDamaged,
)
from personal_server.sources.common.text import printable

Opener = Callable[[], BinaryIO]
HEAD_BYTES = 8192
BUFFER_BYTES = 256 * 1024
MOST_FILES = 1_000_000
FAILURES = (
    OSError,
    EOFError,
    ValueError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
)
# How databases begin, and what SQLite keeps beside a database while a program has it open.
SQLITE = b"SQLite format 3\x00"
BESIDE = ("-journal", "-shm", "-wal")
NO_COPIES: Mapping[str, str] = MappingProxyType({})
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_PACKED = (b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"BZh", b"\xfd7zXZ")


@dataclass(frozen=True, slots=True)
class ExportMember:
    """One file of an export.

    Units: `offset` is where this member begins if all members are laid end to end, in bytes.
    """

    name: str
    size_bytes: int
    offset: int
    opener: Opener = field(repr=False)
    modified_at: datetime

    def open(self, at: int = 0) -> BinaryIO:
        """Give this member as text, from byte `at` on; a mark of UTF-8 before it is no part of it.

        Raises: MemberDamaged, also while reading.
        """
        try:
            inner = self.opener()
            mark = len(BOM_UTF8) if inner.read(len(BOM_UTF8)) == BOM_UTF8 else 0
            inner.seek(mark + at)
        except FAILURES:
            raise MemberDamaged from None
        return _buffered(inner)

    def exact(self) -> BinaryIO:
        """Every byte of this member, for blobs. Raises: MemberDamaged, also while reading."""
        try:
            return _buffered(self.opener())
        except FAILURES:
            raise MemberDamaged from None

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """The first bytes, for recognition by content. Raises: MemberDamaged."""
        with self.open() as stream:
            return stream.read(size)

    def where(self, offset: int) -> str:
        """How a report names what begins at an offset of this member."""
        return f"{self.name} at byte {offset}"

    @property
    def fingerprint(self) -> str:
        """Equal for the same file: name, size and time, not the path it lies under."""
        facts = (self.name, self.size_bytes, self.modified_at.isoformat())
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]

    @property
    def end(self) -> int:
        """The position right after this member."""
        return self.offset + self.size_bytes

    @property
    def suffix(self) -> str:
        """The lower-case ending of the name, with its dot; a hint that only ever narrows."""
        return Path(self.name).suffix.lower()


def _buffered(inner: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_GuardedStream(inner), BUFFER_BYTES)


class _GuardedStream(io.RawIOBase):
    """A raw stream over another that raises `MemberDamaged` only."""

    def __init__(self, inner: BinaryIO) -> None:
        super().__init__()
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  # the typeshed buffer type is private
        BOOKMARK.goes_on()
        try:
            chunk = self._inner.read(len(buffer))
        except FAILURES:
            raise MemberDamaged from None
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._inner.close()
        super().close()


@dataclass(frozen=True, slots=True)
class Export:
    """What one path of the owner holds.

    Shapes: `members` are ordered by name, so that positions mean the same on every read; `zone` is
        the one in which times without a zone are read.
    """

    path: Path
    members: tuple[ExportMember, ...]
    captured_at: datetime
    refused: tuple[Skipped, ...] = ()
    zone: tzinfo = UTC
    archive: zipfile.ZipFile | None = field(default=None, repr=False)

    @property
    def total_bytes(self) -> int:
        """The length of all members laid end to end."""
        return self.members[-1].end if self.members else 0

    @property
    def fingerprint(self) -> str:
        """Equal for the same files: names, sizes and times, not the path they lie under."""
        digest = hashlib.sha256()
        for member in self.members:
            facts = (member.name, member.size_bytes, member.modified_at.isoformat())
            digest.update(repr(facts).encode())
        return digest.hexdigest()[:32]

    def only(self, members: Iterable[ExportMember]) -> Export:
        """The same export narrowed to some members; positions keep their meaning."""
        kept = frozenset(member.name for member in members)
        return replace(self, members=tuple(m for m in self.members if m.name in kept))

    def without(self, readers: Iterable[Export]) -> tuple[ExportMember, ...]:
        """The members that none of these narrowed exports holds."""
        read = {member.name for reader in readers for member in reader.members}
        return tuple(member for member in self.members if member.name not in read)

    def member(self, name: str) -> ExportMember | None:
        """The member of exactly that name."""
        return next((member for member in self.members if member.name == name), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.archive is not None:
            self.archive.close()


def open_export(path: Path, copies: Mapping[str, str] = NO_COPIES) -> Export:
    """Look at a path and list what it holds, without reading it.

    Shapes: `copies` says which files are to be read in place of which.
    Raises: ExportNotFound, ExportUnreadable, ExportTruncated, ExportUnsafe.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ExportNotFound(
            "There is no such file or folder.", "Check the path and try again."
        ) from None
    except OSError:
        raise _unreadable() from None
    if stat.S_ISDIR(mode):
        return _folder(path, copies)
    if not stat.S_ISREG(mode):
        raise ExportUnreadable(
            "This is neither a file nor a folder.", "Give the export as a file or a folder."
        )
    try:
        with path.open("rb") as stream:
            magic = stream.read(8)
    except OSError:
        raise _unreadable() from None
    if magic.startswith(_PACKED):
        raise ExportUnreadable(
            "This is an archive of a kind that cannot be read in place.",
            "Unpack it and import the folder, or ask the platform for a .zip.",
        )
    return _archive(path) if magic.startswith(_ZIP) else _single_file(path, copies)


def _unreadable() -> ExportUnreadable:
    return ExportUnreadable(
        "The file cannot be read.", "Check that your user may read it, then try again."
    )


def _single_file(path: Path, copies: Mapping[str, str]) -> Export:
    """The file, and with a database what its program keeps beside it."""
    with path.open("rb") as stream:
        is_database = stream.read(len(SQLITE)) == SQLITE
    files = [path, *(Path(f"{path}{ending}") for ending in BESIDE if is_database)]
    return _files(path, [(file.name, file) for file in files if file.is_file()], (), copies)


def _folder(path: Path, copies: Mapping[str, str]) -> Export:
    refused: list[Skipped] = []
    files = _regular_files(path, refused)
    return _files(
        path, [(file.relative_to(path).as_posix(), file) for file in files], refused, copies
    )


def _files(
    path: Path,
    files: Iterable[tuple[str, Path]],
    refused: Iterable[Skipped],
    copies: Mapping[str, str],
) -> Export:
    """Files under their names, laid end to end."""
    members: list[ExportMember] = []
    offset = 0
    for name, original in files:
        file = Path(copies.get(str(original), original))
        size = file.stat().st_size
        opener, made_at = _file_opener(file), _modified_at(file)
        members.append(ExportMember(printable(name), size, offset, opener, made_at))
        offset += size
    captured_at = max((member.modified_at for member in members), default=_modified_at(path))
    return Export(path, tuple(members), captured_at, tuple(refused))


def _regular_files(path: Path, refused: list[Skipped]) -> list[Path]:
    """All files but hidden ones; a folder that cannot be read is reported."""

    def unreadable(error: OSError) -> None:
        where = printable(str(error.filename or path))
        refused.append(Skipped(where, "unreadable_folder", "this folder cannot be read", 0))

    found: list[Path] = []
    for folder, folders, names in os.walk(path, followlinks=False, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in names:
            file = Path(folder, name)
            if not name.startswith(".") and stat.S_ISREG(file.lstat().st_mode):
                found.append(file)
        if len(found) > MOST_FILES:
            raise ExportUnreadable(
                f"The folder holds more than {MOST_FILES:,} files.",
                "Import a folder further down instead.",
            )
    return sorted(found)


def _archive(path: Path) -> Export:
    try:
        check_directory(path)
        archive = zipfile.ZipFile(path)
    except (*FAILURES, IndexError, struct.error):
        raise ExportTruncated(
            "The zip file is incomplete or damaged: its table of contents cannot be read.",
            "Download or copy the export again.",
        ) from None
    try:
        entries, refused = safe_entries(archive)
    except BaseException:
        archive.close()
        raise
    members: list[ExportMember] = []
    offset = 0
    for entry in sorted(entries, key=lambda entry: entry.filename):
        size, opener = entry.file_size, partial(archive.open, entry)
        name, made_at = entry.filename, _entry_date(entry)
        members.append(ExportMember(name, size, offset, cast("Opener", opener), made_at))
        offset += size
    captured_at = max((member.modified_at for member in members), default=_modified_at(path))
    return Export(path, tuple(members), captured_at, refused, archive=archive)


def _entry_date(entry: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*entry.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)


def _file_opener(path: Path) -> Opener:
    return lambda: path.open("rb", buffering=64 * 1024)


def _modified_at(path: Path) -> datetime:
    return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)


def file_facts(path: Path, files: int, total_bytes: int) -> Data:
    """What identifies the files of an export; a digest where it is one file."""
    facts: Data = {"name": path.name, "files": files}
    if path.is_dir():
        return facts | {"size_bytes": total_bytes}
    try:
        stated = path.stat()
        digest = _sha256(path, stated.st_size, stated.st_mtime_ns)
    except OSError:  # moved away meanwhile; what it held is stored
        return facts | {"size_bytes": total_bytes}
    return facts | {"size_bytes": stated.st_size, "sha256": digest}


@lru_cache(maxsize=4)
def _sha256(path: Path, _size_bytes: int, _modified_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
