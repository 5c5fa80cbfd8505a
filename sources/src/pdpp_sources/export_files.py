"""What may be known and done about the files of an export before any reader looks into them.

The names of archives and of what lies beside a database, how a file is opened without leaving a
folder, and which files these are.  No reader is imported here: the server asks this module itself.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from pdpp_kernel.source_item import Data
from pdpp_kernel.system.open_files import MOST_DEPTH, real_place

BUFFER_BYTES = 256 * 1024
# How databases begin, and what SQLite keeps beside a database while a program has it open.
SQLITE = b"SQLite format 3\x00"
BESIDE = ("-journal", "-shm", "-wal")
# Endings of names of archives that are read in place.
ARCHIVES = (".zip", ".tgz", ".tar.gz")


def open_file(path: Path, within: Path | None = None) -> BinaryIO:
    """A file to be read; `within` is the folder in which it must really lie.

    The system tells what was opened, and where that lies, whenever a link or pipe was put there.
    Raises: OSError; PermissionError for what lies elsewhere, or is no file.
    """
    stream = open(  # noqa: SIM115
        path, "rb", BUFFER_BYTES // 4, opener=lambda at, flags: os.open(at, flags | os.O_NONBLOCK)
    )
    is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    if not is_file or (within is not None and not real_place(stream).is_relative_to(within)):
        stream.close()
        raise PermissionError
    return stream


def is_too_deep(folder: str, top: Path) -> bool:
    """Whether folders in this one are not looked into any more."""
    return len(Path(folder).relative_to(top).parts) >= MOST_DEPTH


def file_facts(parts: Sequence[Path], files: int, total_bytes: int) -> Data:
    """What identifies the files of an export; a digest where it is one file."""
    path = parts[0]
    facts: Data = {"name": name_of_parts(parts), "files": files, "size_bytes": total_bytes}
    with suppress(OSError):  # moved away meanwhile; what it held is stored
        if len(parts) == 1 and not path.is_dir():
            stated = path.stat()
            facts["sha256"] = _sha256(path, stated.st_size, stated.st_mtime_ns)
            facts["size_bytes"] = stated.st_size
    return facts


def name_of_parts(parts: Sequence[Path]) -> str:
    """What a report calls an export, however many archives it was cut into."""
    first, last = parts[0].name, parts[-1].name
    return first if len(parts) == 1 else f"{first} to {last} ({len(parts)} parts)"


@lru_cache(maxsize=4)
def _sha256(path: Path, _size_bytes: int, _modified_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
