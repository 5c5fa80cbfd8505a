"""Whose the files of a data directory are.

Rule: what somebody else owns, and what a link leads to, is never opened: whoever plants a file
there would read or write as the owner.  The directory itself may be a link of the owner's, to
another disk.
Source: docs/contract/authorization-server.md 1.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from personal_server.errors import StorageUnavailable


class DataNotOwned(StorageUnavailable):
    """A data directory that somebody else could have put something into."""


def require_own_files(data_dir: Path) -> None:
    """Refuse a data directory that is not ours, down to its files and folders.

    Raises: DataNotOwned, StorageUnavailable.
    """
    try:
        _require_own(data_dir.lstat(), "The data directory", may_be_link=True)
        _require_own(data_dir.stat(), "The data directory")
        with os.scandir(data_dir) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                _require_own(found, f"{_shown(entry.name)} in the data directory")
    except FileNotFoundError:
        return  # it is made by us, or a scratch file of another process was just taken away
    except OSError:
        raise StorageUnavailable(
            "The data directory cannot be used. Check that PDPP_DATA_DIR is yours and writable."
        ) from None


def _require_own(found: os.stat_result, what: str, *, may_be_link: bool = False) -> None:
    if found.st_uid != os.geteuid():
        raise DataNotOwned(
            f"{what} belongs to another user.",
            next_step="Run as its owner, or name a directory of your own in PDPP_DATA_DIR.",
        )
    if stat.S_ISLNK(found.st_mode) and not may_be_link:
        raise DataNotOwned(
            f"{what} is a symbolic link.",
            next_step="Remove the link, or put the file itself in its place.",
        )


def _shown(name: str) -> str:
    return name if name.isascii() and name.isprintable() and len(name) <= 64 else "A file"
