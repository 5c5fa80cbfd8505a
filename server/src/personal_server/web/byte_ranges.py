"""Byte ranges: which part of a blob a request asks for.

Rule: one range is honoured, several mean the whole, and what cannot be read as a range is
ignored.
Source: docs/contract/resource-server.md 12.1; RFC 9110, section 14.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from pdpp_kernel.errors import RangeNotSatisfiable

CHUNK_BYTES = 128 * 1024
_ONE_RANGE = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*\Z", re.IGNORECASE)


def asked_range(headers: Mapping[str, str], etag: str, size_bytes: int) -> range | None:
    """The bytes asked for, or `None` for the whole.

    Raises: UnsatisfiableRange.
    """
    match = _ONE_RANGE.match(headers.get("range", ""))
    if match is None or headers.get("if-range", etag) != etag:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:
        start, stop = max(0, size_bytes - int(last)), size_bytes
    else:
        start, stop = int(first), min(size_bytes, int(last) + 1 if last else size_bytes)
        if last and int(last) < start:
            return None
    if start >= stop:
        raise UnsatisfiableRange(size_bytes)
    return range(start, stop)


class FilePart:
    """A stretch of an open file as chunks; closing it closes the file."""

    def __init__(self, file: BinaryIO, part: range) -> None:
        self._file = file
        self._left = len(part)
        file.seek(part.start)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        chunk = self._file.read(min(CHUNK_BYTES, self._left))
        if not chunk:
            raise StopIteration
        self._left -= len(chunk)
        return chunk

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class UnsatisfiableRange(RangeNotSatisfiable):
    """A byte range outside a blob of `size_bytes`."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(
            f"The blob has {size_bytes} bytes; ask for a range within them.", param="Range"
        )
        self.size_bytes = size_bytes
