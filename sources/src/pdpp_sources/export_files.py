"""What may be known and done about the files of an export before any reader looks into them.

The names of archives and of what lies beside a database, how a file is opened without leaving a
folder, and which files these are.  No reader is imported here: the server asks this module itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
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

    The system says where what was opened lies, so no link leads out, whenever it was put there.
    Raises: OSError; PermissionError for what lies elsewhere.
    """
    stream = path.open("rb", buffering=BUFFER_BYTES // 4)
    if within is not None and not real_place(stream).is_relative_to(within):
        stream.close()
        raise PermissionError
    return stream


def is_too_deep(folder: str, top: Path) -> bool:
    """Whether folders in this one are not looked into any more."""
    return len(Path(folder).relative_to(top).parts) >= MOST_DEPTH


def file_facts(parts: Sequence[Path], files: int, total_bytes: int) -> Data:
    """What identifies the files of an export; a digest where it is one file."""
    path = parts[0]
    facts: Data = {"name": name_of_parts(parts), "files": files}
    if path.is_dir() or len(parts) > 1:
        return facts | {"size_bytes": total_bytes}
    try:
        stated = path.stat()
        digest = _sha256(path, stated.st_size, stated.st_mtime_ns)
    except OSError:  # moved away meanwhile; what it held is stored
        return facts | {"size_bytes": total_bytes}
    return facts | {"size_bytes": stated.st_size, "sha256": digest}


def name_of_parts(parts: Sequence[Path]) -> str:
    """What a report calls an export, however many archives it was cut into."""
    if len(parts) == 1:
        return parts[0].name
    return f"{parts[0].name} to {parts[-1].name} ({len(parts)} parts)"


@lru_cache(maxsize=4)
def _sha256(path: Path, _size_bytes: int, _modified_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
