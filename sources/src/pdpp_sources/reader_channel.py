"""How messages of readers travel: framed, through pipes; in shared memory, what is read now."""

from __future__ import annotations

import mmap
import signal
import struct
import traceback
from pathlib import Path
from typing import IO, cast

import msgspec

from pdpp_sources.common.resume_point import STEPS, Place, Step
from pdpp_sources.message_frames import receive_message, send_frame
from pdpp_sources.reader_messages import Message, Reply, Request

# A line of a record has at most 16 MiB where it is stored.
LARGEST_MESSAGE_BYTES = 32 * 1024 * 1024
_FILE_CHARS = 32
_PLACE = struct.Struct("<Bq")
SLATE_BYTES = _FILE_CHARS + _PLACE.size


_requests = msgspec.msgpack.Decoder(Request)
_replies = msgspec.msgpack.Decoder(Reply)
_encoder = msgspec.msgpack.Encoder()


def fault_of(error: BaseException) -> str:
    """The kind of an error and its line of code; its words may hold what was read."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"


def send(stream: IO[bytes], message: Message) -> None:
    """Write one message. Raises: TypeError, ValueError, OverflowError for values it cannot hold."""
    body = _encoder.encode(message)
    if len(body) > LARGEST_MESSAGE_BYTES:
        raise ValueError
    send_frame(stream, body)


def receive_request(stream: IO[bytes]) -> Request | None:
    """The next request, or None at the end."""
    return receive_message(stream, _requests, LARGEST_MESSAGE_BYTES)


def receive_reply(stream: IO[bytes]) -> Reply | None:
    """The next reply, or None if the other side has ended. Raises: msgspec.DecodeError."""
    return receive_message(stream, _replies, LARGEST_MESSAGE_BYTES)


class Slate:
    """Where the reader stands, in a file that both map; it outlives the reader."""

    def __init__(self, fileno: int, seconds: float) -> None:
        self._memory = mmap.mmap(fileno, SLATE_BYTES)
        self._seconds = seconds

    def file(self, fingerprint: str) -> None:
        """It turns to that file."""
        self._memory[:_FILE_CHARS] = fingerprint.encode("ascii").ljust(_FILE_CHARS)

    def stands(self, step: Step, at: int) -> None:
        """It is at that place of the file, and has its time from now on."""
        _PLACE.pack_into(self._memory, _FILE_CHARS, STEPS.index(step) + 1, at)
        self.goes_on()

    def goes_on(self) -> None:
        """It has come further. The system ends the process when the time is up."""
        signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def clear(self) -> None:
        """It stands nowhere."""
        self._memory[:] = bytes(SLATE_BYTES)

    def place(self) -> Place | None:
        """Where it stood last."""
        step, at = cast("tuple[int, int]", _PLACE.unpack_from(self._memory, _FILE_CHARS))
        file = self._memory[:_FILE_CHARS].decode("ascii", "replace").strip()
        return Place(file, STEPS[step - 1], at) if 0 < step <= len(STEPS) and file else None
