"""Folders of this machine that imports may come from: what lies there.

Rule: a place is opened step by step from its folder, and no link is followed on the way; what is
hidden is not shown.  What is read of it is held to its folder again where it is opened.
Source: docs/contract/authorization-server.md 13.7.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from pdpp_kernel.errors import InvalidState, NotFound
from personal_server.domain.hidden_characters import shows_all

MOST_LOOKED_AT, MOST_SHOWN, MOST_STEPS = 20_000, 200, 32
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class FolderEntry(msgspec.Struct, frozen=True):
    """A file or folder that lies there.  Units: `modified_at_ns` UTC nanoseconds."""

    name: str
    is_folder: bool
    size_bytes: int
    modified_at_ns: int


class FolderListing(msgspec.Struct, frozen=True):
    """What lies in a folder, the newest first.

    Shapes: `more` are not listed, `passed_by` neither: links, what is hidden, what is no file.
    """

    folder: Path
    path: str
    entries: tuple[FolderEntry, ...]
    more: int
    passed_by: int


class ImportFolders(msgspec.Struct, frozen=True):
    """The folders that the owner named; `number` is a place among them."""

    folders: tuple[Path, ...] = ()

    def listing(self, number: int, path: str = "") -> FolderListing:
        """What lies in a folder, or in one further down.

        Raises: NotFound; InvalidState where the server may not read it.
        """
        folder, steps = self._steps(number, path)
        with _opened(folder, steps) as descriptor, os.scandir(descriptor) as listed:
            looked_at = list(islice(listed, MOST_LOOKED_AT))
            entries = [entry for item in looked_at if (entry := _entry(item)) is not None]
        entries.sort(key=lambda entry: (-entry.modified_at_ns, entry.name))
        first = tuple(entries[:MOST_SHOWN])
        passed_by = len(looked_at) - len(entries)
        return FolderListing(folder, "/".join(steps), first, len(entries) - len(first), passed_by)

    def find(self, number: int, path: str) -> tuple[Path, FolderEntry]:
        """The folder that imports may come from, and what lies there under a path.

        Raises: NotFound; InvalidState where the server may not read it.
        """
        folder, steps = self._steps(number, path)
        if not steps:
            raise _nothing()
        with _opened(folder, steps[:-1]) as descriptor:
            try:
                stated = os.stat(steps[-1], dir_fd=descriptor, follow_symlinks=False)
            except OSError:
                raise _nothing() from None
        entry = _described(steps[-1], stated)
        if entry is None:
            raise _nothing()
        return folder, entry

    def _steps(self, number: int, path: str) -> tuple[Path, list[str]]:
        steps = list(PurePosixPath(path).parts)
        if not 0 <= number < len(self.folders) or len(steps) > MOST_STEPS:
            raise _nothing()
        if not all(_is_shown(step) for step in steps):
            raise _nothing()
        return self.folders[number], steps


@contextmanager
def _opened(folder: Path, steps: list[str]) -> Generator[int]:
    """A folder, reached from one that the owner named.  Raises: NotFound, InvalidState."""
    descriptor = -1
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        for step in steps:
            above, descriptor = descriptor, os.open(step, _STEP, dir_fd=descriptor)
            os.close(above)
    except PermissionError:
        _close(descriptor)
        raise InvalidState(
            "The server cannot read this folder.",
            next_step="Let the user that runs the server read this folder, then reload the page.",
        ) from None
    except OSError:
        _close(descriptor)
        raise _nothing() from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _close(descriptor: int) -> None:
    if descriptor >= 0:
        os.close(descriptor)


def _entry(item: os.DirEntry[str]) -> FolderEntry | None:
    try:
        return _described(item.name, item.stat(follow_symlinks=False))
    except OSError:  # gone meanwhile
        return None


def _described(name: str, stated: os.stat_result) -> FolderEntry | None:
    is_folder = stat.S_ISDIR(stated.st_mode)
    if not _is_shown(name) or not (is_folder or stat.S_ISREG(stated.st_mode)):
        return None
    return FolderEntry(name, is_folder, 0 if is_folder else stated.st_size, stated.st_mtime_ns)


def _is_shown(name: str) -> bool:
    """A name that stays in its folder, is not hidden, and can be said."""
    return shows_all(name) and not name.startswith((".", "/")) and "\\" not in name


def _nothing() -> NotFound:
    return NotFound(
        "This file or folder does not exist, or no longer exists.", next_step="Reload the page."
    )
