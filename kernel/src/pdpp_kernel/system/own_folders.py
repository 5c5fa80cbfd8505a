"""Folders and files of this account in which nobody else writes, whatever the umask."""

from __future__ import annotations

import os
from pathlib import Path


def make_folders(folder: Path, mode: int = 0o755) -> None:
    """Make a folder and those above it that are missing, all with that mode.  Raises: OSError."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=mode, exist_ok=True)


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else reads, at no moment.  Raises: OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
    with open(os.open(path, flags, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)
        file.truncate()
        file.write(content)
