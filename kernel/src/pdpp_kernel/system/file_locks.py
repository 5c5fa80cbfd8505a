"""Locks on open files, among all processes of this machine.

The system gives a lock back when the process that has it ends, however it ends.
"""

from __future__ import annotations

import fcntl
from typing import Protocol


class OpenFile(Protocol):
    """What has a descriptor."""

    def fileno(self) -> int:
        """The number of the open file."""
        ...


Opened = int | OpenFile


def try_lock(opened: Opened) -> bool:
    """Take the lock of a file for this process alone, unless anybody has it.

    Raises: OSError, where the file system has no locks.
    """
    return _is_taken(opened, fcntl.LOCK_EX)


def is_locked(opened: Opened) -> bool:
    """Whether somebody has the lock.  Nobody who wants it is kept waiting by the question.

    Raises: OSError, where the file system has no locks.
    """
    if not _is_taken(opened, fcntl.LOCK_SH):
        return True
    unlock(opened)
    return False


def lock(opened: Opened) -> None:
    """Take the lock of a file for this process alone; wait for whoever has it.  Raises: OSError."""
    fcntl.flock(opened, fcntl.LOCK_EX)


def unlock(opened: Opened) -> None:
    """Give the lock of a file back."""
    fcntl.flock(opened, fcntl.LOCK_UN)


def lock_byte(descriptor: int, number: int) -> None:
    """Take the lock of one byte; wait for the process that has it.  Raises: OSError."""
    fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, number)


def unlock_byte(descriptor: int, number: int) -> None:
    """Give the lock of one byte back."""
    fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)


def _is_taken(opened: Opened, kind: int) -> bool:
    try:
        fcntl.flock(opened, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
