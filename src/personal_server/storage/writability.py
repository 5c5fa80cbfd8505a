"""Whether writes reach the disk, as the last ones found.

Rule: a write that the disk refuses is one line of the log and a fault in health until a write
succeeds; reading and exporting go on.
Source: docs/contract/resource-server.md 1.10.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from personal_server.domain.texts import message
from personal_server.errors import StorageReadOnly

DISK_FULL, READ_ONLY, WRITE_FAILED, DISK_LOW = "disk_full", "read_only", "write_failed", "disk_low"
REASON_OF_ERRNO = {
    errno.ENOSPC: DISK_FULL,
    errno.EDQUOT: DISK_FULL,
    errno.EFBIG: DISK_FULL,
    errno.EROFS: READ_ONLY,
    errno.EIO: WRITE_FAILED,
}
SENTENCES = {
    DISK_FULL: message(
        "The disk is full, so nothing can be written. Free space; reading and exporting go"
        " on meanwhile."
    ),
    READ_ONLY: message(
        "The disk can only be read, so nothing can be written. Make it writable and start"
        " again; reading and exporting go on meanwhile."
    ),
    WRITE_FAILED: message(
        "The disk refuses writes. Look at its health and make a copy of the data"
        " directory; reading and exporting go on meanwhile."
    ),
    DISK_LOW: message("Little space is left on the disk of the data directory. Free some."),
}
LOW_BYTES = 64 * 1024 * 1024

_log = logging.getLogger(__name__)


def read_only(reason: str) -> StorageReadOnly:
    """The refusal of a write."""
    retry = None if reason == READ_ONLY else 30
    return StorageReadOnly(SENTENCES[reason], reason=reason, retry_after_seconds=retry)


@dataclass(frozen=True, slots=True)
class WriteTrouble:
    """Why nothing can be written, since when (UTC nanoseconds), and what to do about it."""

    reason: str
    since_ns: int
    sentence: str


class Writability:
    """What the writes to one data directory found."""

    def __init__(self, directory: Path, clock: Callable[[], int] = time.time_ns) -> None:
        self._directory = directory
        self._clock = clock
        self._refused: WriteTrouble | None = None
        self._seen: WriteTrouble | None = None

    @property
    def trouble(self) -> WriteTrouble | None:
        """Why the last write was refused; else what the file system says of itself."""
        return self._refused or self._of_disk()

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
        kind = type(cause.__cause__ or cause).__name__
        _log.error("nothing can be written: %s (%s)", reason, kind)
        if self._refused is None or self._refused.reason != reason:
            sentence = cause.text if isinstance(cause, StorageReadOnly) else SENTENCES[reason]
            self._refused = WriteTrouble(reason, self._clock(), sentence)

    def succeeded(self) -> None:
        """Something was written."""
        if self._refused is not None:
            _log.warning("writing works again after %s", self._refused.reason)
            self._refused = None

    def _of_disk(self) -> WriteTrouble | None:
        found = os.statvfs(self._directory)
        if found.f_flag & os.ST_RDONLY:
            reason = READ_ONLY
        elif found.f_bavail * found.f_frsize < LOW_BYTES:
            reason = DISK_LOW
        else:
            self._seen = None
            return None
        if self._seen is None or self._seen.reason != reason:
            self._seen = WriteTrouble(reason, self._clock(), SENTENCES[reason])
        return self._seen
