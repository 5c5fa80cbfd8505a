"""What another process says, taken in before it is asked for.

Whoever reads an export and whoever stores it would otherwise take turns: a pipe holds a hundredth
of what is stored at once.
"""

from __future__ import annotations

import io
import threading
from collections import deque
from typing import IO, cast

AHEAD_BYTES = 8 * 1024 * 1024
"""As much is taken in at most: a little more than a batch of an import."""
_CHUNK_BYTES = 256 * 1024


def read_ahead(pipe: IO[bytes], ahead_bytes: int = AHEAD_BYTES) -> IO[bytes]:
    """The same bytes; they end where the pipe does, and so does the thread that takes them in.

    Whoever leaves before that closes it, and has the pipe end.
    """
    return io.BufferedReader(_Ahead(cast("io.BufferedReader", pipe), ahead_bytes), _CHUNK_BYTES)


class _Ahead(io.RawIOBase):
    def __init__(self, pipe: io.BufferedReader, ahead_bytes: int) -> None:
        self._pipe, self._free_bytes = pipe, ahead_bytes
        self._chunks: deque[memoryview] = deque()
        self._changed = threading.Condition()
        threading.Thread(target=self._take_in, name="read-ahead", daemon=True).start()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Some of them, once there are any; none at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks)
            chunk = self._chunks.popleft()
            taken, left = chunk[: len(buffer)], chunk[len(buffer) :]
            buffer[: len(taken)] = taken
            if left or not chunk:
                self._chunks.appendleft(left)
            self._free_bytes += len(taken)
            self._changed.notify()
        return len(taken)

    def close(self) -> None:
        """Take in nothing more."""
        with self._changed:
            super().close()
            self._changed.notify()

    def _take_in(self) -> None:
        chunk = b"more"
        while chunk and not self.closed:
            try:
                chunk = self._pipe.read1(_CHUNK_BYTES)
            except (OSError, ValueError):  # whoever left closed it
                chunk = b""
            with self._changed:
                self._changed.wait_for(lambda: self._free_bytes > 0 or self.closed)
                self._chunks.append(memoryview(chunk))
                self._free_bytes -= len(chunk)
                self._changed.notify()
