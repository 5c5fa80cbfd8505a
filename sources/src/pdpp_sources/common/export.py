"""An export as its owner has it: one file, a folder, or an archive that is read in place.

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
import tarfile
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import BinaryIO, Self, cast

from pdpp_kernel.source_item import Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.archive import (
    check_directory,
    check_total,
    content_begins,
    safe_entries,
    unpacks_out_of_proportion,
)
from pdpp_sources.common.errors import (
    ExportError,
    ExportNotFound,
    ExportTruncated,
    ExportUnreadable,
    ExportUnsafe,
    MemberDamaged,
)
from pdpp_sources.common.packed import (
    RAW_DEFLATE,
    UNDATED,
    Deflated,
    PackedFile,
    Stretch,
    UnpacksTooFar,
    bytes_of,
    part_of,
    tar_entries,
)
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.text import printable
from pdpp_sources.export_files import (
    BESIDE,
    BUFFER_BYTES,
    SQLITE,
    is_too_deep,
    open_file,
)

Opener = Callable[[], BinaryIO]
HEAD_BYTES = 8192
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
_NO_CONTENTS = (*FAILURES, IndexError, struct.error, tarfile.TarError)
NO_COPIES: Mapping[str, str] = MappingProxyType({})
# How a zip in a zip may be packed to be read from any place of it.
_LEAPED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_GZIP = b"\x1f\x8b"
_OTHERS = (b"7z\xbc\xaf\x27\x1c", b"Rar!", b"BZh", b"\xfd7zXZ")


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

    def open(self, at: int = 0, buffer_bytes: int = BUFFER_BYTES) -> BinaryIO:
        """Give this member as text, from byte `at` on; a mark of UTF-8 before it is no part of it.

        Raises: MemberDamaged, also while reading.
        """
        try:
            inner = self.opener()
            mark = len(BOM_UTF8) if inner.read(len(BOM_UTF8)) == BOM_UTF8 else 0
            inner.seek(mark + at)
        except FAILURES:
            raise MemberDamaged from None
        return _buffered(inner, buffer_bytes)

    def exact(self) -> BinaryIO:
        """Every byte of this member, for blobs. Raises: MemberDamaged, also while reading."""
        try:
            return _buffered(self.opener())
        except FAILURES:
            raise MemberDamaged from None

    def head(self, size: int = HEAD_BYTES) -> bytes:
        """The first bytes, for recognition by content. Raises: MemberDamaged."""
        with self.open(buffer_bytes=min(size, BUFFER_BYTES)) as stream:
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


def _buffered(inner: BinaryIO, size_bytes: int = BUFFER_BYTES) -> BinaryIO:
    return io.BufferedReader(_GuardedStream(inner), size_bytes)


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

    Shapes: the order of `members` depends on the files only (names; in a tar, its own), so that
        positions mean the same on every read; `path` is the first of several parts; `zone` is the
        one in which times without a zone are read; `passed_by` are names that were not looked at,
        each with what it is: `hidden`, or one of the `links` and other things that are no files;
        `accounted_for` are the names of members that the reader at work has opened, or has said
        are part of others (`unmentioned_files.py`).
    """

    path: Path
    members: tuple[ExportMember, ...]
    captured_at: datetime
    refused: tuple[Skipped, ...] = ()
    zone: tzinfo = UTC
    is_packed: bool = False
    opened: ExitStack = field(default_factory=ExitStack, repr=False)
    passed_by: tuple[tuple[str, str], ...] = ()
    accounted_for: set[str] = field(default_factory=set[str], repr=False, compare=False)

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
        names = frozenset(member.name for member in members)
        return replace(self, members=tuple(m for m in self.members if m.name in names))

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
        self.opened.close()


def open_export(
    path: Path, copies: Mapping[str, str] = NO_COPIES, within: Path | None = None
) -> Export:
    """Look at a path and list what it holds, without reading it.

    Shapes: `copies` says which files are to be read in place of which; `within` as in `open_file`.
    Raises: ExportNotFound, ExportUnreadable, ExportTruncated, ExportUnsafe.
    """
    try:
        if within is not None and not path.resolve().is_relative_to(within):
            raise ExportUnsafe(
                "This link leads out of the folder.",
                "Import the file or folder itself, not the link to it.",
            )
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise ExportNotFound(
            "There is no such file or folder.", "Check the path and try again."
        ) from None
    except OSError:
        raise _unreadable() from None
    if stat.S_ISDIR(mode):
        return _folder(path, copies, within)
    if not stat.S_ISREG(mode):
        raise ExportUnreadable(
            "This path is neither a file nor a folder.", "Give the export as a file or a folder."
        )
    try:
        with open_file(path, within) as stream:
            magic = stream.read(8)
    except OSError:
        raise _unreadable() from None
    if magic.startswith(_OTHERS):
        raise ExportUnreadable(
            "Archives of this kind cannot be read directly.",
            "Unpack the archive and import the folder, or ask the platform for a .zip or .tgz.",
        )
    if magic.startswith((*_ZIP, _GZIP)):
        return _archive(path, within)
    return _single_file(path, copies, within)


def open_parts(paths: Sequence[Path], within: Path | None = None) -> Export:
    """Look at the archives that one export was cut into, as if they were one.

    A part that cannot be opened is reported, and costs no other; `within` as in `open_file`.
    Raises: ExportError, if none can be opened.
    """
    return _joined(
        paths[0], [(path.name, partial(open_export, path, within=within)) for path in paths]
    )


def _unreadable() -> ExportUnreadable:
    return ExportUnreadable(
        "The file cannot be read.", "Check that your user may read the file, then try again."
    )


def _single_file(path: Path, copies: Mapping[str, str], within: Path | None) -> Export:
    """The file, and with a database what its program keeps beside it."""
    with open_file(path, within) as stream:
        is_database = stream.read(len(SQLITE)) == SQLITE
    files = [path, *(Path(f"{path}{ending}") for ending in BESIDE if is_database)]
    members = [(file.name, file) for file in files if file.is_file()]
    return _files(path, members, (), copies, within)


def _folder(path: Path, copies: Mapping[str, str], within: Path | None) -> Export:
    refused: list[Skipped] = []
    passed_by: list[tuple[str, Path]] = []
    files = _regular_files(path, refused, passed_by)
    members = [(file.relative_to(path).as_posix(), file) for file in files]
    names = ((sort, printable(each.relative_to(path).as_posix())) for sort, each in passed_by)
    return replace(_files(path, members, refused, copies, within), passed_by=tuple(names))


def _files(
    path: Path,
    files: Iterable[tuple[str, Path]],
    refused: Iterable[Skipped],
    copies: Mapping[str, str],
    within: Path | None,
) -> Export:
    """Files under their names, laid end to end."""
    members: list[ExportMember] = []
    offset = 0
    for name, original in files:
        copied = copies.get(str(original))  # a copy of ours lies elsewhere
        file = original if copied is None else Path(copied)
        size = file.stat().st_size
        opener = partial(open_file, file, within if copied is None else None)
        made_at = _modified_at(file)
        members.append(ExportMember(printable(name), size, offset, opener, made_at))
        offset += size
    captured_at = max((member.modified_at for member in members), default=_modified_at(path))
    return Export(path, tuple(members), captured_at, tuple(refused))


def _regular_files(
    path: Path, refused: list[Skipped], passed_by: list[tuple[str, Path]]
) -> list[Path]:
    """All files but hidden ones; a folder that cannot be read, or lies too deep, is reported."""

    def refuse(folder: str, reason: str) -> None:
        refused.append(Skipped(printable(folder), "unreadable_folder", reason, 0))

    def unreadable(error: OSError) -> None:
        refuse(str(error.filename or path), "this folder cannot be read")

    paths: list[Path] = []
    for folder, folders, names in os.walk(path, followlinks=False, onerror=unreadable):
        for name in sorted([*folders, *names]):
            file = Path(folder, name)
            mode = file.lstat().st_mode
            if name.startswith("."):
                passed_by.append(("hidden", file))
            elif stat.S_ISREG(mode):
                paths.append(file)
            elif not stat.S_ISDIR(mode):
                passed_by.append(("links", file))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if folders and is_too_deep(folder, path):
            refuse(folder, "this folder holds others that lie too deep")
            folders.clear()
        if len(paths) + len(passed_by) > MOST_FILES:
            raise ExportUnreadable(
                message("The folder contains more than %(most)s files.", most=MOST_FILES),
                "Import one of the folders inside instead.",
            )
    return sorted(paths)


def _archive(path: Path, within: Path | None) -> Export:
    """A zip, or a tar that was packed with gzip. Raises: ExportError."""
    opened = ExitStack()
    try:
        stream = opened.enter_context(open_file(path, within))
        size_bytes = path.stat().st_size
        if stream.read(len(_GZIP)) != _GZIP:
            return _zip(path, stream, size_bytes, opened)
        files, refused = tar_entries(stream, size_bytes)
        return _of_packed(path, files, refused, opened)
    except BaseException as error:
        opened.close()
        if isinstance(error, UnpacksTooFar):
            raise unpacks_out_of_proportion() from None
        if isinstance(error, _NO_CONTENTS):
            raise _incomplete() from None
        raise


def _incomplete() -> ExportTruncated:
    return ExportTruncated(
        "The archive is incomplete or damaged: the list of its files cannot be read.",
        "Download or copy the export again.",
    )


def _zip(path: Path, stream: BinaryIO, size_bytes: int, opened: ExitStack) -> Export:
    """A zip, or what is in the zips that are all it holds."""
    archive, entries, refused = _entries(stream, size_bytes, opened)
    inner = [entry for entry in entries if entry.file_size]
    is_only_zips = inner and all(entry.filename.lower().endswith(".zip") for entry in inner)
    if not is_only_zips or not all(entry.compress_type in _LEAPED for entry in inner):
        files = [_packed_file(archive, entry) for entry in entries]
        return _of_packed(path, files, refused, opened)
    parts = [(entry.filename, partial(_inner_zip, path, stream, entry)) for entry in inner]
    export = _joined(path, parts)
    opened.enter_context(export)
    check_total(export.total_bytes, size_bytes)
    return replace(export, refused=(*refused, *export.refused), opened=opened)


def _inner_zip(path: Path, stream: BinaryIO, entry: zipfile.ZipInfo) -> Export:
    """A zip in a zip; what it holds further in stays packed. Raises: ExportError."""
    size = entry.file_size
    try:
        packed = part_of(bytes_of(stream), content_begins(stream, entry), entry.compress_size)
        if entry.compress_type != zipfile.ZIP_STORED:
            packed = Deflated(packed, RAW_DEFLATE, size).read_at
        inside = io.BufferedReader(Stretch(packed, 0, size), BUFFER_BYTES)
        archive, entries, refused = _entries(inside, size, opened := ExitStack())
    except _NO_CONTENTS:
        raise _incomplete() from None
    files = [_packed_file(archive, entry) for entry in entries]
    return _of_packed(path, files, refused, opened)


def _entries(
    stream: BinaryIO | io.BufferedReader, size_bytes: int, opened: ExitStack
) -> tuple[zipfile.ZipFile, list[zipfile.ZipInfo], tuple[Skipped, ...]]:
    check_directory(stream, size_bytes)
    archive = opened.enter_context(zipfile.ZipFile(stream))
    entries, refused = safe_entries(archive)
    return archive, sorted(entries, key=lambda entry: entry.filename), refused


def _packed_file(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> PackedFile:
    opener = cast("Opener", partial(archive.open, entry))
    return PackedFile(entry.filename, entry.file_size, _entry_date(entry), opener)


def _of_packed(
    path: Path, files: Sequence[PackedFile], refused: tuple[Skipped, ...], opened: ExitStack
) -> Export:
    """The files of an archive, laid end to end."""
    members: list[ExportMember] = []
    offset = 0
    for file in files:
        facts = (file.name, file.size_bytes, offset, file.opener, file.modified_at)
        members.append(ExportMember(*facts))
        offset += file.size_bytes
    captured_at = max((member.modified_at for member in members), default=_modified_at(path))
    return Export(path, tuple(members), captured_at, refused, is_packed=True, opened=opened)


def _joined(path: Path, parts: Iterable[tuple[str, Callable[[], Export]]]) -> Export:
    """Several archives as one export: all their files, laid end to end."""
    members: dict[str, ExportMember] = {}
    refused: list[Skipped] = []
    errors: list[ExportError] = []
    opened = ExitStack()
    offset = 0
    for label, open_part in parts:
        try:
            part = opened.enter_context(open_part())
        except ExportError as error:
            errors.append(error)
            refused.append(Skipped(label, "unreadable_part", error.sentence, 0))
            continue
        refused += part.refused
        for member in part.members:
            # Two parts may hold other files of one name: none of them is lost.
            name = f"{label}/{member.name}" if member.name in members else member.name
            members[name] = replace(member, name=name, offset=offset)
            offset += member.size_bytes
    if errors and not members:
        opened.close()
        raise errors[0]
    captured_at = max(
        (member.modified_at for member in members.values()), default=_modified_at(path)
    )
    joined_members = tuple(members.values())
    return Export(path, joined_members, captured_at, tuple(refused), is_packed=True, opened=opened)


def _entry_date(entry: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*entry.date_time, tzinfo=UTC)
    except ValueError:
        return UNDATED


def _modified_at(path: Path) -> datetime:
    return datetime.fromtimestamp(int(path.stat().st_mtime), UTC)
