"""What a crash leaves on the disk: nothing.

Rule: the memory of the server holds records, passwords and tokens in clear, so no image of it is
written, and on Linux no other program of the same user may read it.
Source: docs/contract/authorization-server.md 16.
"""

from __future__ import annotations

import ctypes
import resource
import sys

_DUMPABLE = 4  # PR_SET_DUMPABLE of linux/prctl.h


def forbid_core_dumps() -> None:
    """For this process, and by the limit for those it starts."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # Where a program collects dumps (systemd-coredump), the kernel pays no heed to the limit.
        ctypes.CDLL(None).prctl(_DUMPABLE, 0, 0, 0, 0)
