"""A folder in memory for the files of a whole run of the tests, where the machine has room.

`python -m tests.memory_folder` makes one and prints its path, or nothing: whoever asked removes it,
and what a run that was killed left goes with the first run of another day.
Rule: a run leaves a gigabyte or two of databases, each of which is synced to the disk many times;
that they are on a disk is proven by tests of their own (kills, full and read-only disks), which
mount one or start again from its files, and not by when a disk has written.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM_BYTES = 6 << 30
"""Four times what a run leaves."""
LEFT_BYTES = 4 << 30
"""What programs need beside it: workers, browsers and servers."""
FOR_ALL = 0o1777
"""As `/tmp` has it: servers that tests start go on as another user of the machine."""
LONGEST_SECONDS = 24 * 3_600
"""No run takes so long."""
BEGIN = "pdpp.run-"
_AVAILABLE = re.compile(r"^MemAvailable: +([0-9]+) kB$", re.MULTILINE)


def has_room(memory: Path, told: str) -> bool:
    """Whether programs may run in a memory folder, and a run fits; `told` is /proc/meminfo."""
    try:
        disk = os.statvfs(memory)
    except OSError:
        return False
    available = _AVAILABLE.search(told)
    free = disk.f_bavail * disk.f_frsize
    is_usable = os.access(memory, os.W_OK) and not disk.f_flag & os.ST_NOEXEC
    fits = available is not None and int(available[1]) * 1024 >= ROOM_BYTES + LEFT_BYTES
    return is_usable and fits and free >= ROOM_BYTES


def remove_left(memory: Path, now: float) -> None:
    """Folders of this user that nobody removed, since the run was killed."""
    for each in memory.glob(f"{BEGIN}*"):
        with suppress(FileNotFoundError):
            told = each.lstat()
            if told.st_uid == os.getuid() and told.st_mtime < now - LONGEST_SECONDS:
                shutil.rmtree(each, ignore_errors=True)


def main() -> None:
    """Print the path of a new folder, if there is room and nobody named another one."""
    remove_left(MEMORY, time.time())  # noqa: TID251 (where clocks begin)
    told = Path("/proc/meminfo")
    is_named = "TMPDIR" in os.environ  # noqa: TID251 (a setting of tests)
    if not is_named and told.exists() and has_room(MEMORY, told.read_text()):
        folder = Path(tempfile.mkdtemp(prefix=BEGIN, dir=MEMORY))
        folder.chmod(FOR_ALL)
        print(folder)


if __name__ == "__main__":
    main()
