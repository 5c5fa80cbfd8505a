"""Images of a process's memory, which holds records, passwords and tokens in clear."""

from __future__ import annotations

import ctypes
import resource
import sys

_DUMPABLE = 4  # PR_SET_DUMPABLE of linux/prctl.h


def forbid_core_dumps() -> None:
    """Write no image of this process, nor of those it starts; on Linux no other program reads it.

    Source: docs/contract/authorization-server.md 16.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # Where a program collects dumps (systemd-coredump), the kernel pays no heed to the limit.
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)
