"""What the system tells of open files, and how deep folders are looked into."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

MOST_DEPTH = 100
"""So many folders in each other are looked into; a path may have thousands."""
_LONGEST_PATH_BYTES = 1024


def real_place(stream: BinaryIO) -> Path:
    """Where an opened file lies.  Raises: OSError, where the system does not tell."""
    if sys.platform == "darwin":
        path = fcntl.fcntl(stream, fcntl.F_GETPATH, bytes(_LONGEST_PATH_BYTES))
        return Path(os.fsdecode(path.rstrip(b"\0")))
    return Path(f"/proc/self/fd/{stream.fileno()}").readlink()


def is_being_written(path: Path) -> bool:
    """Whether a program has a file open for writing; `False` where the system does not tell.

    Linux gives a read lease only where nobody writes.  It is let go at once; whoever would break it
    meanwhile sends a signal that is ignored unless somebody asked for it.
    """
    if sys.platform != "linux":
        return False
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.fcntl(opened, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:  # another's file, or a file system without leases
        return False
    finally:
        os.close(opened)
    return False


def unnamed_file() -> int:
    """A descriptor of a file without a name: in memory, where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pdpp", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
