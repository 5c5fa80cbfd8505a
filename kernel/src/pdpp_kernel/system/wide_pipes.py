"""Pipes that hold more than usual."""

from __future__ import annotations

import fcntl
import sys
from contextlib import suppress

AHEAD_BYTES = 1024 * 1024
"""What a wide pipe holds: as much as Linux lets anyone have."""


def widen(pipe: int) -> None:
    """Have a pipe hold `AHEAD_BYTES`, so that whoever writes goes on while nobody reads yet."""
    if sys.platform == "linux":
        with suppress(OSError):  # too much waits in pipes already: it stays as it is
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, AHEAD_BYTES)
