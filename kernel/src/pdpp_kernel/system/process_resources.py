"""What a process holds of the machine, and may hold."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

UNLIMITED = resource.RLIM_INFINITY
_ONE_HEAP = -8  # M_ARENA_MAX of malloc.h of the GNU C library


def raise_descriptor_limit() -> int:
    """Take as many descriptors as the system allows; how many that are, or `UNLIMITED`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # macOS says "unlimited" and means less
        return soft
    return hard


def memory_bytes() -> int:
    """What this process holds in memory; where the system does not say, the most it held."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return pages * os.sysconf("SC_PAGE_SIZE")


def share_one_heap() -> None:
    """Let all threads to come have one heap, where the C library would give each its own.

    Each would keep the most that a read of its thread ever took.
    """
    with suppress(AttributeError, OSError):  # other C libraries have one heap, or their own way
        ctypes.CDLL(None).mallopt(_ONE_HEAP, 1)


def give_memory_back() -> None:
    """Give the system what was freed: the C library keeps it while something lies behind it."""
    with suppress(AttributeError, OSError):  # other C libraries have their own way
        ctypes.CDLL(None).malloc_trim(0)
