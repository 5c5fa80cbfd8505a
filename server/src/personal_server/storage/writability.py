"""Whether writes reach the disk, as the last ones found.

Rule: a write that the disk refuses is one line of a server's log and a fault in its health until a
write succeeds; reading and exporting go on.  Nothing is written where the place it lay at is gone.
Source: docs/contract/resource-server.md 1.10.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pdpp_kernel.errors import StorageReadOnly
from pdpp_kernel.refused_writes import (
    DATA_MOVED,
    DISK_LOW,
    READ_ONLY,
    SENTENCES,
    data_moved,
)

LOW_BYTES = 64 * 1024 * 1024

_log = logging.getLogger(__name__)


class WriteTrouble(msgspec.Struct, frozen=True):
    """Why nothing can be written, since when (UTC nanoseconds), and what to do about it."""

    reason: str
    since_ns: int
    sentence: str


class Writability:
    """What the writes to one place found: a database file, or the directory beside another one.

    `logs` is for a server; a command says to whoever gave it what was refused.
    """

    def __init__(self, path: Path, *, logs: bool, clock: Callable[[], int] = time.time_ns) -> None:
        self._place = path
        self._found = path.stat()
        self._logs = logs
        self._clock = clock
        self._refused: WriteTrouble | None = None
        self._seen: WriteTrouble | None = None

    @property
    def trouble(self) -> WriteTrouble | None:
        """Why the last write was refused; else what the file system says of itself."""
        return self._refused or self._of_disk()

    def require_place(self) -> None:
        """What is written to a file that was moved is lost with its journal, which has its name.

        Raises: StorageUnavailable.
        """
        if not self._is_in_place():
            raise data_moved()

    @contextmanager
    def observed(self, written: Callable[[], int]) -> Generator[None, None, None]:
        """Note how a write ends; `written` counts what was written ever."""
        before = None if self._refused is None else written()
        try:
            yield
        except StorageReadOnly as refusal:
            self.refused(str(refusal.members["reason"]), refusal)
            raise
        if before is not None and written() != before:
            self.succeeded()

    def refused(self, reason: str, cause: BaseException) -> None:
        """A write was refused."""
        if self._logs:
            kind = type(cause.__cause__ or cause).__name__
            _log.error("nothing can be written: %s (%s)", reason, kind)
        if self._refused is None or self._refused.reason != reason:
            sentence = cause.text if isinstance(cause, StorageReadOnly) else SENTENCES[reason]
            self._refused = WriteTrouble(reason, self._clock(), sentence)

    def succeeded(self) -> None:
        """Something was written."""
        if self._refused is not None:
            if self._logs:
                _log.warning("writing works again after %s", self._refused.reason)
            self._refused = None

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self._place.stat(), self._found)
        except OSError:
            return False

    def _of_disk(self) -> WriteTrouble | None:
        reason = self._seen_reason()
        if reason is None:
            self._seen = None
        elif self._seen is None or self._seen.reason != reason:
            self._seen = WriteTrouble(reason, self._clock(), SENTENCES[reason])
        return self._seen

    def _seen_reason(self) -> str | None:
        try:
            stats = os.statvfs(self._place)
        except OSError:
            return DATA_MOVED
        if not self._is_in_place():
            return DATA_MOVED
        if stats.f_flag & os.ST_RDONLY:
            return READ_ONLY
        return DISK_LOW if stats.f_bavail * stats.f_frsize < LOW_BYTES else None
