"""A log in a file that begins anew by itself: JSON lines, bounded in total, for its owner alone.

Rule: a line that cannot be written there is not lost: it goes to standard error, is counted, and
health says so until a line can be written again.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from pdpp_kernel.system.file_locks import lock, unlock
from pdpp_kernel.values import render_instant
from personal_server.web.health import Fault
from personal_server.web.logs import OneLine

LONGEST_LINE_CHARS = 8_000
_OF_THE_DISK = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)


class LogFile(logging.Handler):
    """The file at `path`; what was full is `path.1`, what was full before it `path.2`, and so on.

    Units: none grows beyond `most_bytes`; they are `kept` at most, with the one that is written.
    Raises: OSError, when it is made and its place is wrong; a disk that takes no writes now is no
        hindrance.
    """

    def __init__(self, path: Path, most_bytes: int, kept: int) -> None:
        super().__init__()
        self.setFormatter(OneLine())
        self.path = path
        self.unwritten = 0
        self._most_bytes = most_bytes
        self._kept = kept
        self._failing_since_ns = 0
        self._otherwise = logging.StreamHandler(sys.stderr)
        self._otherwise.setFormatter(self.formatter)
        self._descriptor: int | None = None
        try:
            self._descriptor = _opened(path)
        except OSError as error:
            if error.errno not in _OF_THE_DISK:
                raise
            self._failing_since_ns = time.time_ns()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, or let standard error have it."""
        at_ns = int(record.created * 1_000) * 1_000_000
        try:
            self._write(_json_line(record, at_ns, self.format(record)))
        except OSError:
            self.unwritten += 1
            self._failing_since_ns = self._failing_since_ns or at_ns
            self._otherwise.emit(record)
        else:
            self._failing_since_ns = 0

    def faults(self) -> Iterator[Fault]:
        """That the last line could not be written."""
        since_ns, unwritten = self._failing_since_ns, self.unwritten
        if since_ns:
            yield Fault(
                "log",
                "log_unwritable",
                since_ns,
                (
                    f"Log lines go to standard error ({unwritten} so far). Free space "
                    "on the disk of PDPP_LOG_FILE, or make the file writable."
                ),
            )

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        super().close()

    def _write(self, line: bytes) -> None:
        while not self._is_written(line):
            pass  # a file of that name has begun meanwhile

    def _is_written(self, line: bytes) -> bool:
        """Whether it is written; else this process has another file now.

        Several processes write one file, a line after the other; the first that finds it full
        begins anew for all.
        """
        if self._descriptor is None:
            self._descriptor = _opened(self.path)
        descriptor = self._descriptor
        lock(descriptor)
        try:
            found = os.fstat(descriptor)
            if not _is_at(self.path, found):
                self._descriptor = _opened(self.path)
            elif found.st_size and found.st_size + len(line) > self._most_bytes:
                self._descriptor = self._begun_anew()
            elif os.write(descriptor, line) < len(line):
                os.ftruncate(descriptor, found.st_size)  # no half a line stays
                raise OSError("the disk took a part of a line")
            return self._descriptor == descriptor
        finally:
            unlock(descriptor)
            if self._descriptor != descriptor:
                os.close(descriptor)

    def _begun_anew(self) -> int:
        """Let the oldest go; what is not there is not missed."""
        for number in range(self._kept - 1, 0, -1):
            older = _numbered(self.path, number - 1)
            if older.exists():
                older.replace(_numbered(self.path, number))
        if self._kept == 1:
            self.path.unlink(missing_ok=True)
        return _opened(self.path)


def _is_at(path: Path, found: os.stat_result) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), found)
    except FileNotFoundError:
        return False


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}") if number else path


def _opened(path: Path) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _json_line(record: logging.LogRecord, at_ns: int, message: str) -> bytes:
    text = message[:LONGEST_LINE_CHARS].encode("utf-8", "replace").decode()
    members = {
        "at": render_instant(at_ns),
        "level": record.levelname.lower(),
        "from": record.name,
        "message": text,
    }
    return orjson.dumps(members, option=orjson.OPT_APPEND_NEWLINE)
