"""How many things this process can do at once."""

from __future__ import annotations

import os


def cores() -> int:
    """The cores that it may use; those of the machine where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
