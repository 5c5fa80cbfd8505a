"""A stream that is made at its own speed, however slowly it is taken.

Rule: what a stream is made from (a snapshot of the database) is let go of when the last chunk is
made; nobody outside decides how long that takes.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

CHUNK_BYTES = 64 * 1024


class ScratchStream:
    """Chunks that wait in a scratch file until they are taken; an iterator of them.

    A thread makes them. `made` is called once it is done, whether it came to the end, failed or was
    closed.  Where the file cannot grow, since the disk is full or cannot be written, each chunk is
    handed over when it is asked for: then nobody else writes either whom that would hold up.
    """

    def __init__(
        self, chunks: Iterator[bytes], made: Callable[[], None], directory: Path | None = None
    ) -> None:
        self._chunks = chunks
        self._made = made
        self._file = _scratch_file(directory)
        self._written = 0
        self._taken = 0
        self._handed: bytes | None = None
        self._error: BaseException | None = None
        self._is_over = False
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._make, name="scratch stream")
        self._thread.start()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        with self._changed:
            self._changed.wait_for(
                lambda: self._taken < self._written or self._handed is not None or self._is_over
            )
            if self._taken < self._written and self._file is not None:
                length = min(CHUNK_BYTES, self._written - self._taken)
                chunk = os.pread(self._file.fileno(), length, self._taken)
                self._taken += len(chunk)
                self._changed.notify_all()
                return chunk
            if self._handed is not None:
                chunk, self._handed = self._handed, None
                self._changed.notify_all()
                return chunk
            if self._error is not None:
                raise self._error
            raise StopIteration

    def close(self) -> None:
        """End it, taken to the end or not."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        if self._file is not None:
            self._file.close()

    def _make(self) -> None:
        try:
            try:
                for chunk in self._chunks:
                    if not self._keep(chunk):
                        break
            finally:
                self._made()
        except BaseException as error:  # noqa: BLE001 (raised where the chunks are taken)
            self._error = error
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()

    def _keep(self, chunk: bytes) -> bool:
        """Put a chunk where it waits; whether more are wanted."""
        if self._write(chunk):
            with self._changed:
                self._written += len(chunk)
                self._changed.notify_all()
                return not self._is_closed
        with self._changed:
            self._changed.wait_for(lambda: self._taken == self._written or self._is_closed)
            self._handed = chunk
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._handed is None or self._is_closed)
            return not self._is_closed

    def _write(self, chunk: bytes) -> bool:
        if self._file is None:
            return False
        left, at = memoryview(chunk), self._written
        try:
            while left:
                count = os.pwrite(self._file.fileno(), left, at)
                left, at = left[count:], at + count
        except OSError:
            return False
        return True


def _scratch_file(directory: Path | None) -> IO[bytes] | None:
    try:
        return tempfile.TemporaryFile(dir=directory)
    except OSError:
        return None
