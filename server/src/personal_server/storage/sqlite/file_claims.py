"""Who may use the file of a database: one server, in turns with the commands of the owner.

Raises: DatabaseInUse, StorageReadOnly, StorageUnavailable.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.refused_writes import refusal_of
from pdpp_kernel.system.file_locks import try_lock, unlock
from pdpp_kernel.system.own_folders import make_folders

BUSY_MS = 5_000
BUSY_LOOK_SECONDS = 0.001


class Turns:
    """Whose turn it is to begin a write, among all processes that have the file open.

    SQLite lets whoever asks at the right moment begin, which is mostly whoever wrote last.  Here
    one waits for the file, and the others for that one; who ends and comes again is behind.
    The lock is that of the directory, which is there on a full disk, too.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None

    @contextmanager
    def taken(self) -> Generator[None, None, None]:
        """A turn.  Called by one thread at a time.  Raises: apsw.BusyError."""
        if self._descriptor is None:
            self._descriptor = os.open(self._directory, os.O_RDONLY | os.O_CLOEXEC)
        descriptor = self._descriptor
        for waited in itertools.count():
            if try_lock(descriptor):
                break
            if not _waits_again(waited):
                raise apsw.BusyError("the turn of another")
        try:
            yield
        finally:
            unlock(descriptor)

    def close(self) -> None:
        """Nobody writes any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def wait_for_others(driver: apsw.Connection) -> None:
    """Let a connection wait for whoever has the file, and look often whether it is free."""
    driver.set_busy_handler(_waits_again)


def _waits_again(waited: int) -> bool:
    time.sleep(BUSY_LOOK_SECONDS)
    return waited * BUSY_LOOK_SECONDS * 1_000 < BUSY_MS


class DatabaseInUse(StorageUnavailable):
    """Another server works on this file."""


def make_private(path: Path) -> None:
    """The file is 0600 in a 0700 directory: no other account reads these records."""
    try:
        make_folders(path.parent, 0o700)
        path.parent.chmod(0o700)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    except OSError as error:
        raise refusal_of(error) from error


def claim_file(path: Path) -> int:
    """An advisory lock beside the file, held while anybody has the descriptor: a server lives.

    Raises: DatabaseInUse, StorageReadOnly, StorageUnavailable.
    """
    try:
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise refusal_of(error) from error
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    raise DatabaseInUse(
        "Another server is already running on this data directory.",
        next_step=(
            "Stop that server with Ctrl-C in its terminal, or with `pdpp service "
            "remove`; or set PDPP_DATA_DIR to another directory."
        ),
    )
