"""Whose data this is: the database says it, `config.toml` repeats it, and the two must agree.

Rule: nothing is made anew beside something that was there.  The database comes first and
`config.toml` after it, so a configuration without a database means that the database was lost.
Source: docs/contract/authorization-server.md 0.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from personal_server.errors import StorageUnavailable


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
            f"config.toml knows an owner, but {database.name} beside it is missing or empty.",
            next_step=f"Put {database.name} (with its -wal file) back, or restore a backup into an"
            " empty directory (`pdpp restore FILE`); to begin anew, move config.toml away.",
        )
    if _has_bytes(database.with_name(f"{database.name}-wal")):
        raise DataMismatch(
            f"{database.name}-wal is here, but the database it belongs to is missing or empty.",
            next_step=f"Put {database.name} back beside it; without it, move the -wal file away.",
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
            next_step="Put config.toml back; if it is lost, `pdpp admin write-config` writes one"
            " for this database (without the [[clients]] you had set up).",
        )
    owner = known or store.claim(configured or propose())
    if configured not in (None, owner):
        raise DataMismatch(
            "config.toml names another owner than the database beside it.",
            next_step="Put back the config.toml of this database; if it is lost, move this one"
            " away and run `pdpp admin write-config`.",
        )
    return owner


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False
