"""What a process and those that it started hold in memory, and took, as Linux counts it.

Of a process that has ended everything is 0, since it may end between two looks.
"""

from __future__ import annotations

import ctypes
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_CHILD_SUBREAPER = 36  # of prctl(2): orphans further down become children of this process


def family(pid: int) -> list[int]:
    """A process, the first, and all that come from it, whichever of its threads started them."""
    found, waiting = list[int](), [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += _children(found[-1])
    return found


@contextmanager
def orphans_waited_for() -> Generator[None]:
    """What outlives a process that it came from is waited for, so that its time is counted."""
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = {*_children(os.getpid())}
    yield
    for pid in {*_children(os.getpid())} - before:
        os.waitpid(pid, 0)


def processor_seconds() -> float:
    """What all that came from this process has taken, of those that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def held_bytes(pid: int) -> int:
    """What a process and all that come from it hold now, looked at while none comes or goes."""
    while True:
        processes = family(pid)
        held = sum(map(share_bytes, processes))
        if family(pid) == processes:
            return held


def share_bytes(pid: int) -> int:
    """What one process holds now (PSS): of pages that several share its part of them."""
    return _counted(pid, "smaps_rollup", "Pss:")


def peak_bytes(pid: int) -> int:
    """The most that one process has held so far, with all pages that it shares."""
    return _counted(pid, "status", "VmHWM:")


def _children(pid: int) -> list[int]:
    found = list[int]()
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # a thread that ended has none
                found += map(int, (task / "children").read_text(encoding="ascii").split())
    return found


def _counted(pid: int, file: str, name: str) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8").splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
