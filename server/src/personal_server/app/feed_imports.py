"""`pdpp import` for feeds: a process for each, which is asked over a pipe and reports over another.

Rule: the command finds the very store that serves.  What runs in the process: `cli/fed_import.py`.
Source: docs/contract/feeds.md 4 and 5.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, Any

import orjson

from pdpp_kernel.system.file_locks import try_lock
from pdpp_sources.started_process import StartedProcess, started_process
from personal_server.feeds.feed_runs import PutOff
from personal_server.feeds.import_reports import TOO_SLOW
from personal_server.feeds.wanted_imports import WantedImport, packed
from personal_server.feeds.watched_folders import FolderTrouble, files_beneath
from personal_server.settings import Settings, command_environment

FOLDER = "feeds"
IMPORTER = "personal_server.cli.fed_import"
IMPORT_SECONDS, BYTES_A_SECOND = 1_800.0, 128 * 1024
"""How long an import may take, and how many bytes give it a second more."""
_PIECE_BYTES = 64 * 1024


@dataclass(slots=True)
class ImportCommand:
    """`pdpp import --json`, in a process of its own, one at a time for each feed.

    It holds a lock in the folder while it lives, and ends soon after the server.
    Shapes: `module` is what runs the command, `least_seconds` how long the smallest import may
        take.
    """

    folder: Path
    environment: Mapping[str, str]
    module: str = field(default=IMPORTER, kw_only=True)
    least_seconds: float = field(default=IMPORT_SECONDS, kw_only=True)
    _running: list[StartedProcess] = field(default_factory=list[StartedProcess], init=False)
    _lock: Lock = field(default_factory=Lock, init=False)
    _is_stopping: bool = field(default=False, init=False)

    @classmethod
    def of(cls, settings: Settings) -> ImportCommand:
        """That which finds the store of these settings."""
        return cls(settings.data_dir / FOLDER, command_environment(settings))

    def __call__(self, feed_id: str, wanted: WantedImport) -> Mapping[str, Any]:
        """What it printed; nothing where it was ended, and why where it took too long.

        Raises: PutOff.
        """
        with self._claimed(feed_id) as claim, self._started(claim) as process:
            with suppress(BrokenPipeError):
                process.requests.write(packed(wanted, self.environment))
                process.requests.close()
            printed = self._printed(process, wanted.paths)
        if self._is_stopping:
            raise PutOff
        if printed is None:
            return {"error": {"code": TOO_SLOW}}
        try:
            return orjson.loads(printed)
        except orjson.JSONDecodeError:
            return {}

    def stop(self) -> None:
        """End what runs; what it stored by then stays, and nothing more begins."""
        with self._lock:
            self._is_stopping = True
            for each in self._running:
                each.kill()

    def _printed(self, process: StartedProcess, paths: Sequence[Path]) -> bytes | None:
        """What it said; None where it took too long."""
        printed = bytearray()
        if _is_read(process.replies, self.least_seconds, printed):
            return bytes(printed)
        size_bytes = sum(map(_size_of, paths))
        if _is_read(process.replies, size_bytes / BYTES_A_SECOND, printed):
            return bytes(printed)
        return None

    @contextmanager
    def _started(self, claim: IO[bytes]) -> Generator[StartedProcess]:
        """Ended with all that it started when the block ends.  Raises: PutOff."""
        with started_process(self.module, 0, os.dup(claim.fileno()), asks=True) as process:
            with self._lock:
                if self._is_stopping:
                    raise PutOff
                self._running.append(process)
            try:
                yield process
            finally:
                with self._lock:
                    self._running.remove(process)

    @contextmanager
    def _claimed(self, feed_id: str) -> Generator[IO[bytes]]:
        """Raises: PutOff while an import of a server that was killed goes on."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / f"{feed_id}.lock"
        path.touch(mode=0o600)
        with path.open("ab") as lock:
            if not try_lock(lock):
                raise PutOff
            yield lock


def _is_read(stream: IO[bytes], seconds: float, into: bytearray) -> bool:
    """Whether a pipe ended within so many seconds; what came of it by then is added."""
    poll, end = select.poll(), time.monotonic() + seconds
    poll.register(stream, select.POLLIN)
    while poll.poll(max(0.0, end - time.monotonic()) * 1_000):
        piece = os.read(stream.fileno(), _PIECE_BYTES)
        if not piece:
            return True
        into += piece
    return False


def _size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder; of what is gone or closed, none."""
    with suppress(OSError, FolderTrouble):
        if path.is_dir():
            return sum(stated.st_size for _, stated in files_beneath(path))
        return path.lstat().st_size
    return 0
