"""The memory of a process that goes on for long.

Rule: what is made at the start stays for good, so nothing is looked for among it, then or later;
what requests leave is mostly freed at once, so that few rounds find the rest, and whatever thread
freed it, the next request can have it.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

OBJECTS_BETWEEN_ROUNDS = 50_000
# of malloc.h of the GNU C library
M_ARENA_MAX = -8


def share_one_heap() -> None:
    """Let all threads to come have one heap, where the C library would give each its own.

    Each would keep the most that a read of its thread ever took.
    """
    with suppress(AttributeError, OSError):  # other C libraries have one heap, or their own way
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def put_off() -> None:
    """Look for nothing until the start is over."""
    gc.disable()


def leave_what_is_there() -> None:
    """Look from now on, among what comes later."""
    gc.freeze()
    gc.set_threshold(OBJECTS_BETWEEN_ROUNDS, 20, 20)
    gc.enable()
