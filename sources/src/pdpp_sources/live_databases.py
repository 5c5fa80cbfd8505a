"""Databases that a program has open, copied before they are read: the copy stands still.

The reader may write nothing, and a program may write at any time; so whoever asks it to read copies
such a file with the log beside it, and looks whether it changed meanwhile. Nothing is opened but
for reading, no lock is asked for or minded, and the copy is deleted with its folder.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from pdpp_sources.common.errors import ExportUnreadable
from pdpp_sources.export_files import BESIDE, SQLITE, is_too_deep, open_file

_TRIES = 10
_PAUSE_SECONDS = 0.2
_MARGIN_BYTES = 64 * 1024 * 1024
Stamp = tuple[tuple[int, int], ...]


def copies_of_live(path: Path, folder: Path, within: Path | None = None) -> dict[str, str]:
    """Copy each database in use under a path, with what lies beside it, into a folder.

    Returns: where the copy of each file lies, by the path of the file.
    Shapes: `within` as in `open_file`.
    Raises: ExportUnreadable, where one never stands still or the copy has no room.
    """
    copies: dict[str, str] = {}
    for number, database in enumerate(_live(path)):
        own = folder / str(number)
        own.mkdir()
        for file in _steady(database, own, within):
            copies[str(file)] = str(own / file.name)
    return copies


def _live(path: Path) -> Iterator[Path]:
    """The databases beside which their program keeps something."""
    if path.is_file():
        if len(_files_of(path)) > 1:
            yield path
        return
    for folder, folders, names in os.walk(path, followlinks=False):
        goes_on = not is_too_deep(folder, path)
        folders[:] = [name for name in folders if goes_on and not name.startswith(".")]
        listed = set(names)
        for name in sorted(listed):
            if any(name + ending in listed for ending in BESIDE):
                file = Path(folder, name)
                # of a folder no link is read
                if not file.is_symlink() and len(_files_of(file)) > 1:
                    yield file


def _files_of(database: Path) -> list[Path]:
    """A database with what lies beside it; nothing if it is none."""
    try:
        with open_file(database) as stream:
            if stream.read(len(SQLITE)) != SQLITE:
                return []
    except OSError:
        return []
    files = (Path(f"{database}{ending}") for ending in BESIDE)
    return [database, *(file for file in files if file.is_file() and not file.is_symlink())]


def _steady(database: Path, folder: Path, within: Path | None) -> list[Path]:
    """Copy until nothing changed meanwhile. Raises: ExportUnreadable."""
    for _ in range(_TRIES):
        try:
            files = _files_of(database)
            before = _stamp(files)
            _check_room(sum(size for size, _ in before), folder)
            for file in files:
                with open_file(file, within) as opened, (folder / file.name).open("wb") as copy:
                    shutil.copyfileobj(opened, copy)
                shutil.copystat(file, folder / file.name)
            if before == _stamp(_files_of(database)):
                return files
        except FileNotFoundError:  # a log that its program took away meanwhile
            pass
        except OSError:
            raise ExportUnreadable(
                "This database is open in a program, so the import cannot copy it.",
                "Close the program, and import the database again.",
            ) from None
        time.sleep(_PAUSE_SECONDS)
    raise ExportUnreadable(
        "A program keeps changing this database.",
        "Close the program, and import the database again.",
    )


def _stamp(files: list[Path]) -> Stamp:
    return tuple((each.st_size, each.st_mtime_ns) for each in (file.stat() for file in files))


def _check_room(size_bytes: int, folder: Path) -> None:
    if shutil.disk_usage(folder).free < size_bytes + _MARGIN_BYTES:
        raise ExportUnreadable(
            "This database is open in a program, and the disk has no space for a copy.",
            "Free space on the disk, or close the program and copy the database file yourself.",
        )
