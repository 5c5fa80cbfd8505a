"""A member's bytes, with every way an archive or a disk can fail turned into one error."""

from __future__ import annotations

import io
import lzma
import zipfile
import zlib
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


def guarded(opener: Callable[[], BinaryIO], at: int = 0) -> BinaryIO:
    """Open a stream at an offset. Raises: MemberDamaged."""
    try:
        inner = opener()
        if at:
            inner.seek(at)
    except FAILURES:
        raise MemberDamaged from None
    return io.BufferedReader(_Guarded(inner), 262_144)
