"""Whose a data directory is: its files, and what its database says of its owner.

Rule: what somebody else owns, and what a link leads to, is never opened: whoever plants a file
there would read or write as the owner.  The directory itself may be a link of the owner's, to
another disk.
Rule: the database says whose the data is, `config.toml` repeats it, and the two must agree.
Nothing is made anew beside something that was there.  The database comes first and `config.toml`
after it, so a configuration without a database means that the database was lost.
Source: docs/contract/authorization-server.md 0 and 1.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from pdpp_kernel.errors import StorageUnavailable
from pdpp_kernel.refused_writes import refusal_of
from pdpp_kernel.system.own_account import is_own


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
    except OSError as error:
        raise refusal_of(error) from None


def _require_own(found: os.stat_result, what: str, *, may_be_link: bool = False) -> None:
    if not is_own(found):
        raise DataNotOwned(
            f"{what} belongs to another user.",
            next_step=(
                "Run the command as that user, or set PDPP_DATA_DIR to a directory of your own."
            ),
        )
    if stat.S_ISLNK(found.st_mode) and not may_be_link:
        raise DataNotOwned(
            f"{what} is a symbolic link.",
            next_step="Remove the link, or put the file itself in its place.",
        )


def _shown(name: str) -> str:
    return name if name.isascii() and name.isprintable() and len(name) <= 64 else "A file"


class DataMismatch(StorageUnavailable):
    """The files of a data directory do not belong together."""


class OwnedStore(Protocol):
    """What a database says of its owner."""

    def owner(self) -> str | None:
        """Whose it is, if that was ever said."""
        ...

    def claim(self, subject_id: str) -> str:
        """Say whose it is, once; whose it then is."""
        ...

    def holds_anything(self) -> bool:
        """Whether anything was declared, granted or set up in it."""
        ...


def require_database(database: Path, configured: str | None) -> None:
    """Refuse a directory whose database is gone, before one is made in its place.

    Shapes: `configured` as in `settle_owner`.  Raises: DataMismatch.
    """
    if _has_bytes(database):
        return
    if configured is not None:
        raise DataMismatch(
            f"config.toml names an owner, but {database.name} beside it is missing or empty.",
            next_step=(
                f"Put {database.name} (with its -wal file) back, or restore a backup "
                "into an empty directory (`pdpp restore FILE`); to start anew, move "
                "config.toml away."
            ),
        )
    if _has_bytes(database.with_name(f"{database.name}-wal")):
        raise DataMismatch(
            f"{database.name}-wal is here, but the database it belongs to is missing or empty.",
            next_step=(
                f"Put {database.name} back beside the -wal file; if you do not have "
                "it, move the -wal file away."
            ),
        )


def settle_owner(store: OwnedStore, configured: str | None, propose: Callable[[], str]) -> str:
    """Whose this database is; it is claimed where nobody's yet.

    Shapes: `configured` is the subject of `config.toml`, `None` without one; `propose` makes the
        id of an owner who begins.
    Raises: DataMismatch.
    """
    known = store.owner()
    if configured is None and known is not None and store.holds_anything():
        raise DataMismatch(
            "config.toml is missing beside a database that holds data.",
            next_step=(
                "Put config.toml back; if it is lost, `pdpp admin write-config` writes "
                "a new one for this database (without the [[clients]] that you had set "
                "up)."
            ),
        )
    owner = known or store.claim(configured or propose())
    if configured not in (None, owner):
        raise DataMismatch(
            "config.toml names another owner than the database beside it.",
            next_step=(
                "Put back the config.toml of this database; if it is lost, move the "
                "present one away and run `pdpp admin write-config`."
            ),
        )
    return owner


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
