"""Messages between two processes: each is its length and then its bytes."""

from __future__ import annotations

import struct
from typing import IO

_LENGTH = struct.Struct("<I")


def send_frame(stream: IO[bytes], body: bytes) -> None:
    """Write one; the caller flushes."""
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)


def receive_frame(stream: IO[bytes], largest_bytes: int) -> bytes | None:
    """The next one; None at the end, where it was cut, and for one that is too large."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > largest_bytes:
        return None
    body = stream.read(length)
    return body if len(body) == length else None
