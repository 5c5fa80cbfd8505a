"""What a process and those that it started hold in memory, as Linux counts it.

Of a process that has ended everything is 0, since it may end between two looks.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def family(pid: int) -> list[int]:
    """A process, the first, and all that come from it, whichever of its threads started them."""
    found, waiting = list[int](), [pid]
    while waiting:
        found.append(waiting.pop())
        waiting += _children(found[-1])
    return found


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
