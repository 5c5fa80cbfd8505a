"""A member's bytes, with every way an archive or a disk can fail turned into one error."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable
from typing import BinaryIO

from personal_server.sources.errors import MemberDamaged

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


class _Guarded(io.RawIOBase):
    """A raw stream over another that raises `MemberDamaged` only."""

    def __init__(self, inner: BinaryIO) -> None:
        super().__init__()
        self._inner = inner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]  # the typeshed buffer type is private
        try:
            chunk = self._inner.read(len(buffer))
        except FAILURES:
            raise MemberDamaged from None
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._inner.close()
        super().close()


def guarded(opener: Callable[[], BinaryIO]) -> BinaryIO:
    """Open a stream. Raises: MemberDamaged, also while reading."""
    try:
        return _buffered(opener())
    except FAILURES:
        raise MemberDamaged from None


def guarded_text(opener: Callable[[], BinaryIO], at: int = 0) -> BinaryIO:
    """The same from an offset behind the mark of UTF-8, which some programs put before text.

    Raises: MemberDamaged, also while reading.
    """
    try:
        inner = opener()
        mark = len(BOM_UTF8) if inner.read(len(BOM_UTF8)) == BOM_UTF8 else 0
        inner.seek(mark + at)
        return _buffered(inner)
    except FAILURES:
        raise MemberDamaged from None


def _buffered(inner: BinaryIO) -> BinaryIO:
    return io.BufferedReader(_Guarded(inner), 262_144)
