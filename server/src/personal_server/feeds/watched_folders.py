"""What lies in a watched folder: names, sizes and times, and never content.

Source: docs/contract/feeds.md 5.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from pdpp_kernel.system.open_files import MOST_DEPTH
from personal_server.domain.hidden_characters import shows_all

MOST_ENTRIES = 20_000
MOST_FRESH = 2_000
WHOLE = "."
"""The name of the item where the folder is one."""
_UNFINISHED = (
    *(".part", ".crdownload", ".download", ".partial", ".tmp", ".opdownload", ".!ut"),
    ".filepart",
)
_DATABASES = frozenset(
    {"places.sqlite", "History", "History.db", "chat.db", "Bookmarks.plist", "Bookmarks"}
)
# What one file adds to the mark of a folder; sums do not depend on the order of a listing.
_SUM_BITS = 128
# Files that came in the same tick of a coarse clock as the newest that was taken before.
_SAME_TICK_NS = 2_000_000_000


class FolderLayout(StrEnum):
    """What an item of a watched folder is."""

    EXPORTS = "exports"
    MAILDIR = "maildir"
    PROFILE = "profile"
    TREE = "tree"


class FolderTrouble(Exception):
    """Why a folder cannot be looked at; `needs_owner` where that does not pass by itself."""

    def __init__(self, code: str, *, needs_owner: bool) -> None:
        super().__init__(code)
        self.code = code
        self.needs_owner = needs_owner


class SeenItem(msgspec.Struct, frozen=True):
    """An item as it lies there.

    Units: `newest_ns` is the newest of its times, by the clock of the place.
    """

    name: str
    mark: str
    newest_ns: int
    size_bytes: int
    is_unfinished: bool


class FolderLook(msgspec.Struct):
    """One look at a folder.

    Shapes: `fresh` are paths of a maildir, below the folder, that came since the time given, and
        `has_more` whether there were more than are listed.
    """

    items: list[SeenItem] = msgspec.field(default_factory=list[SeenItem])
    fresh: list[str] = msgspec.field(default_factory=list[str])
    has_more: bool = False


def layout_of(folder: Path) -> FolderLayout:
    """What the items of a folder are, by the names in it.  Raises: FolderTrouble."""
    names = {each.name for each in _listed(folder)}
    if {"cur", "new"} <= names:
        return FolderLayout.MAILDIR
    if names & _DATABASES:
        return FolderLayout.PROFILE
    is_vault = bool(names & {".obsidian", "logseq"})
    if is_vault or any(name.endswith((".md", ".markdown")) for name in names):
        return FolderLayout.TREE
    return FolderLayout.EXPORTS


def look_at(folder: Path, layout: FolderLayout, reached_ns: int | None) -> FolderLook:
    """List a folder.  Raises: FolderTrouble."""
    found = FolderLook()
    if layout is not FolderLayout.EXPORTS:
        top = _whole(folder, WHOLE, found, reached_ns)
        if top is not None:
            found.items.append(top)
        return found
    entries = [each for each in _listed(folder) if not each.name.startswith(".")]
    if len(entries) > MOST_ENTRIES:
        raise FolderTrouble("folder_too_large", needs_owner=True)
    names = {each.name for each in entries}
    for entry in sorted(entries, key=lambda each: each.name):
        seen = _seen(entry, names)
        if seen is not None:
            found.items.append(seen)
    return found


def _listed(folder: Path) -> list[os.DirEntry[str]]:
    """Raises: FolderTrouble."""
    try:
        with os.scandir(folder) as entries:
            found: list[os.DirEntry[str]] = []
            for entry in entries:
                found.append(entry)
                if len(found) > 2 * MOST_ENTRIES:
                    break
            return found
    except PermissionError:
        raise FolderTrouble("folder_unreadable", needs_owner=True) from None
    except OSError:
        raise FolderTrouble("folder_gone", needs_owner=False) from None


def _seen(entry: os.DirEntry[str], names: set[str]) -> SeenItem | None:
    """An entry of a folder of exports; nothing for what is no file and no folder."""
    try:
        stated = entry.stat(follow_symlinks=False)
    except OSError:  # gone meanwhile
        return None
    if stat.S_ISDIR(stated.st_mode):
        if entry.name.encode(errors="ignore").decode() != entry.name:  # which no ledger takes
            return None
        return _whole(Path(entry.path), entry.name, FolderLook(), None)
    if not stat.S_ISREG(stated.st_mode) or not shows_all(entry.name):
        return None
    newest_ns = max(stated.st_mtime_ns, stated.st_ctime_ns)
    mark = f"{stated.st_size:x}.{stated.st_mtime_ns:x}.{stated.st_ino:x}"
    is_unfinished = (
        not stated.st_size
        or _is_unfinished(entry.name)
        or any(entry.name + ending in names for ending in _UNFINISHED)
    )
    return SeenItem(entry.name, mark, newest_ns, stated.st_size, is_unfinished)


def _is_unfinished(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(_UNFINISHED) or lower.startswith((".syncthing.", "~$"))


def _whole(folder: Path, name: str, found: FolderLook, reached_ns: int | None) -> SeenItem | None:
    """A folder with all in it as one item, in memory that does not grow with it.

    Raises: FolderTrouble for the folder itself; what is gone or closed beneath it adds nothing.
    """
    mark, count, size_bytes, newest_ns = 0, 0, 0, 0
    for path, stated in files_beneath(folder):
        count += 1
        size_bytes += stated.st_size
        newest_ns = max(newest_ns, stated.st_mtime_ns, stated.st_ctime_ns)
        facts = f"{path}\0{stated.st_size}\0{stated.st_mtime_ns}\0{stated.st_ino}"
        digest = hashlib.blake2b(os.fsencode(facts), digest_size=_SUM_BITS // 8).digest()
        mark = (mark + int.from_bytes(digest, "little")) % (1 << _SUM_BITS)
        if reached_ns is not None and stated.st_ctime_ns > reached_ns - _SAME_TICK_NS:
            if len(found.fresh) < MOST_FRESH:
                found.fresh.append(path)
            else:
                found.has_more = True
    if not count:
        if name == WHOLE:
            _listed(folder)  # says why, where it cannot be read
        return None
    return SeenItem(name, f"{count:x}.{size_bytes:x}.{mark:x}", newest_ns, size_bytes, False)


def files_beneath(
    folder: Path, beneath: str = "", depth: int = MOST_DEPTH
) -> Iterator[tuple[str, os.stat_result]]:
    """Each regular file, with its path below the folder.

    Hidden ones and links are passed over, and what lies in more than so many folders.  Raises:
    FolderTrouble for the folder itself.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                with suppress(OSError):  # gone meanwhile
                    if entry.is_dir(follow_symlinks=False):
                        inner = f"{beneath}{entry.name}/"
                        if depth:
                            yield from files_beneath(Path(entry.path), inner, depth - 1)
                    elif entry.is_file(follow_symlinks=False):
                        yield f"{beneath}{entry.name}", entry.stat(follow_symlinks=False)
    except OSError:
        if not beneath:
            _listed(folder)
