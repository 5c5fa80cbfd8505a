"""What processes give up for good.

A process that reads strangers' files gives this up before it opens the first of them.  Everywhere:
the time that one entry may take, the terminal, an image of its memory, and to outlive the process
that started it.  On Linux: memory beyond a bound, and all system calls but those that reading needs
(`system_calls.py`), so no network, no new processes, no other process, and no change to files.  The
filter is the kernel's own (seccomp), needs no rights, and cannot be taken off again.  Which files
it may read is said once they are known (`landlock.py`).  macOS counts no memory against a process
and has neither.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress

import msgspec

from pdpp_kernel.system.memory_images import forbid_core_dumps

MB = 1024 * 1024
# So often a process looks whether the one that started it is still there.
PARENT_SECONDS = 2.0


class Limits(msgspec.Struct, frozen=True):
    """What the reader of one entry may take.

    Units: `seconds` of processor time between two steps of reading; `memory_bytes` of the process.
    """

    seconds: float = 10
    memory_bytes: int = 256 * MB


LIMITS = Limits()


def confine(limits: Limits) -> list[str]:
    """Give up what can be given up here; the words name what could not."""
    end_with(os.getppid())
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asked
    with suppress(PermissionError):  # the first of its session has no terminal but its own
        os.setsid()
    forbid_core_dumps()
    _lower(resource.RLIMIT_FSIZE, 0)
    if sys.platform != "linux":
        return ["using more memory", "using the network", "reading other files"]
    # only a confined process loads them
    from pdpp_kernel.system import landlock, system_calls  # noqa: PLC0415

    _lower(resource.RLIMIT_DATA, limits.memory_bytes)
    missing = [] if system_calls.refuse_others() else ["using the network"]
    return missing if landlock.version() else [*missing, "reading other files"]


def end_with(parent: int) -> None:
    """End soon after the process that started this one, though it be busy.

    Linux would do it by itself (PR_SET_PDEATHSIG), but at the end of the *thread* that started it:
    those of a pool end while their process goes on.
    """

    def look(*_: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, PARENT_SECONDS, PARENT_SECONDS)


def _lower(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(kind, (most, most))
