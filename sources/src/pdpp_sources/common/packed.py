"""Bytes inside other files, read from any place without unpacking them to disk.

The reader of exports may write nothing (`confinement.py`), so what a platform packed as one
stream (a `.tgz`, a zip in a zip) is unpacked again from the nearest place that was kept.
"""

from __future__ import annotations

import io
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, BinaryIO, cast

from pdpp_kernel.source_item import Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.archive import (
    LARGEST_TOTAL_RATIO,
    MOST_ENTRIES,
    NOISE,
    SMALL_ENTRY_BYTES,
    refusal_of_name,
    too_many_entries,
)
from pdpp_sources.common.errors import ExportUnreadable
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.text import printable

ReadAt = Callable[[int, int], bytes]
GZIP, RAW_DEFLATE = 31, -15  # as zlib calls them
UNDATED = datetime(1980, 1, 1, tzinfo=UTC)
_GZIP_MARK = b"\x1f\x8b"
_PIECE_BYTES = 64 * 1024
_CHUNK_BYTES = 256 * 1024
_FIRST_SPACING_BYTES = 4 * 1024 * 1024
_MOST_KEPT = 256  # places, of some 40 KB each
_MOST_CURSORS = 4


class UnpacksTooFar(ValueError):
    """More comes out of an archive than it may."""


class Stretch(io.RawIOBase):
    """A part of a longer run of bytes, as a file."""

    def __init__(self, read_at: ReadAt, begin: int, size_bytes: int) -> None:
        super().__init__()
        self._read_at = read_at
        self._begin = begin
        self._size = size_bytes
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Turn to a place, which costs nothing yet."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  # the typeshed buffer type is private
        """As much as fits and is there."""
        wanted_bytes = min(len(buffer), max(0, self._size - self._at))
        read_bytes = 0
        while read_bytes < wanted_bytes:
            try:
                chunk = self._read_at(self._begin + self._at, wanted_bytes - read_bytes)
            except (EOFError, zlib.error):
                if not read_bytes:
                    raise
                break  # what came before the damage is given first
            if not chunk:
                break
            buffer[read_bytes : read_bytes + len(chunk)] = chunk
            read_bytes += len(chunk)
            self._at += len(chunk)
        return read_bytes


def part_of(read_at: ReadAt, begin: int, size_bytes: int) -> ReadAt:
    """Those bytes alone."""
    return lambda at, size: read_at(begin + at, max(0, min(size, size_bytes - at)))


def bytes_of(file: BinaryIO) -> ReadAt:
    """The bytes of an open file, from any place."""

    def read_at(at: int, size_bytes: int) -> bytes:
        file.seek(at)
        return file.read(size_bytes)

    return read_at


@dataclass(slots=True)
class _Place:
    """How far unpacking has come; `chunk` is what was unpacked last, and ends there."""

    inflater: Any  # zlib gives its type no name
    packed_at: int = 0
    at: int = 0
    chunk: bytes = field(default=b"", repr=False)

    def copy(self) -> _Place:
        return replace(self, inflater=self.inflater.copy(), chunk=b"")


class Deflated:
    """Deflated bytes, read from any place.

    Memory is bounded: the places kept grow apart as they grow many.
    Raises: UnpacksTooFar, while reading, where more comes out than `most_bytes`; EOFError and
        zlib.error where they are cut short or damaged.
    """

    def __init__(self, packed: ReadAt, wrapping: int, most_bytes: int) -> None:
        self._packed = packed
        self._wrapping = wrapping
        self._most = most_bytes
        self._kept = [_Place(zlib.decompressobj(wrapping))]
        self._spacing = _FIRST_SPACING_BYTES
        self._cursors: list[_Place] = []

    def read_at(self, at: int, size_bytes: int) -> bytes:
        """Some bytes from a place on, at most as many; none behind the end."""
        cursor = self._nearest(at)
        while cursor.at <= at:
            if not self._goes_on(cursor):
                return b""
        begin = at - (cursor.at - len(cursor.chunk))
        return cursor.chunk[begin : begin + size_bytes]

    def _nearest(self, at: int) -> _Place:
        """The cursor that has least to go, or a new one where a kept place has less."""
        point = max((p for p in self._kept if p.at <= at), key=lambda p: p.at)
        fit = [c for c in self._cursors if c.at - len(c.chunk) <= at]
        best = max(fit, key=lambda c: c.at, default=None)
        if best is None or (best.at <= at and best.at < point.at):
            best = point.copy()
        else:
            self._cursors.remove(best)
        self._cursors = [best, *self._cursors[: _MOST_CURSORS - 1]]
        return best

    def _goes_on(self, point: _Place) -> bool:
        """Unpack the next chunk; whether there was one."""
        chunk = b""
        while not chunk:
            packed = self._packed(point.packed_at, _PIECE_BYTES)
            if point.inflater.eof:
                if self._wrapping != GZIP or not packed.startswith(_GZIP_MARK):
                    return False
                point.inflater = zlib.decompressobj(GZIP)  # one stream of gzip behind the other
            chunk = point.inflater.decompress(packed, _CHUNK_BYTES)
            unread_bytes = len(point.inflater.unconsumed_tail) + len(point.inflater.unused_data)
            point.packed_at += len(packed) - unread_bytes
            if not packed and not chunk and not point.inflater.eof:
                raise EOFError
        point.at += len(chunk)
        point.chunk = chunk
        if point.at > self._most:
            raise UnpacksTooFar
        BOOKMARK.goes_on()  # at most `most_bytes` in all, so never without end
        self._keep(point)
        return True

    def _keep(self, point: _Place) -> None:
        if point.at >= self._kept[-1].at + self._spacing:
            self._kept.append(point.copy())
        if len(self._kept) > _MOST_KEPT:
            self._kept = self._kept[::2]
            self._spacing *= 2


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file of an archive."""

    name: str
    size_bytes: int
    modified_at: datetime
    opener: Callable[[], BinaryIO] = field(repr=False)


def tar_entries(file: BinaryIO, packed_bytes: int) -> tuple[list[PackedFile], tuple[Skipped, ...]]:
    """The files of a tar that was packed with gzip, in its order, and what may not be read of it.

    Their order is that of the tar, not of their names: reading on is cheap, turning back is not.
    Raises: ExportUnreadable, if it is no tar; ExportUnsafe; UnpacksTooFar; whatever damage raises.
    """
    most = max(SMALL_ENTRY_BYTES, LARGEST_TOTAL_RATIO * packed_bytes)
    deflated = Deflated(bytes_of(file), GZIP, most)
    whole = io.BufferedReader(Stretch(deflated.read_at, 0, sys.maxsize), _CHUNK_BYTES)
    try:
        tar = tarfile.open(fileobj=whole, mode="r:")  # noqa: SIM115 (closes nothing of ours)
    except (tarfile.ReadError, EOFError, zlib.error):
        raise ExportUnreadable(
            "Archives of this kind cannot be read directly.",
            "Unpack this file and import the content, or ask the platform for a .zip or .tgz.",
        ) from None
    files: dict[str, PackedFile] = {}
    refused: list[Skipped] = []
    for info in _each_entry(tar):
        name = printable(info.name).removeprefix("./")
        if NOISE.search(name):
            continue
        reason = _refusal(info) or (
            message("the archive contains a second file of the same name")
            if name in files
            else None
        )
        if reason is not None:
            refused.append(Skipped(name[:200], "unsafe_entry", reason, 0))
        elif info.isreg():
            opener = partial(Stretch, deflated.read_at, info.offset_data, info.size)
            files[name] = PackedFile(
                name, info.size, _instant(info.mtime), cast("Callable[[], BinaryIO]", opener)
            )
        if len(files) + len(refused) > MOST_ENTRIES:
            raise too_many_entries()
    whole.seek(tar.offset)
    if whole.read(tarfile.BLOCKSIZE).strip(b"\0"):
        raise tarfile.ReadError  # tarfile takes a damaged header for the end
    return list(files.values()), tuple(refused)


def _each_entry(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """All but folders. Raises: tarfile.ReadError, also where entries do not follow each other."""
    end = 0
    while (info := tar.next()) is not None:
        tar.members = []  # pyright: ignore[reportAttributeAccessIssue]  # it would keep them all
        if info.size < 0 or info.offset_data < end:
            raise tarfile.ReadError
        end = info.offset_data
        if not info.isdir():
            yield info


def _instant(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return UNDATED


def _refusal(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return message("the file is a link")
    if not info.isreg() or info.issparse():
        return message("the entry is not an ordinary file")
    return refusal_of_name(info.name)
