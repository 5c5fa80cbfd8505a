"""Messages between two processes: each is its length and then its bytes, which are MessagePack."""

from __future__ import annotations

import struct
from typing import IO, TypeVar

import msgspec

_LENGTH = struct.Struct("<I")
_encoder = msgspec.msgpack.Encoder()
Message = TypeVar("Message")


def send_message(stream: IO[bytes], message: msgspec.Struct) -> None:
    """Write one, at once."""
    send_frame(stream, _encoder.encode(message))
    stream.flush()


def receive_message(
    stream: IO[bytes], decoder: msgspec.msgpack.Decoder[Message], largest_bytes: int
) -> Message | None:
    """The next one, or None at the end.  Raises: msgspec.DecodeError."""
    body = receive_frame(stream, largest_bytes)
    return None if body is None else decoder.decode(body)


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
