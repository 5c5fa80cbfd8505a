"""What a process that was killed left in the data directory.

Rule: a file or folder that names its process goes when that process is gone; one that names none
when it is a day old.  Scratch of uploads is swept with the blobs (`storage/sql/records/blobs`).
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from pathlib import Path

from pdpp_kernel.values import DAY_NANOSECONDS

_OF_PROCESS = re.compile(r"\.(?:config-(\d+)\.toml|backup-(\d+)-.*)")
_LEDGER = ".ledger-"
_log = logging.getLogger(__name__)


def sweep_scratch(data_dir: Path, now_ns: int) -> int:
    """Remove it; how much there was.  What cannot be removed is told in the log and stays."""
    left = [path for path in data_dir.iterdir() if _is_left(path, now_ns)]
    for path in left:
        try:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        except OSError:
            _log.warning("%s, left by a process that was killed, cannot be removed", path.name)
    return len(left)


def is_alive(process: str) -> bool:
    """Whether a process of that number runs; what is no number is none."""
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


def _is_left(path: Path, now_ns: int) -> bool:
    match = _OF_PROCESS.fullmatch(path.name)
    if match is not None:
        return not is_alive(match[1] or match[2])
    if not path.name.startswith(_LEDGER):
        return False
    try:
        return path.lstat().st_mtime_ns < now_ns - DAY_NANOSECONDS
    except FileNotFoundError:
        return False
