"""Damaged pages of a SQLite file, and whose they are.

Rule: it is asked of the file by itself, since a damaged one may not even open as a store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from pdpp_kernel.errors import StorageReadOnly
from pdpp_kernel.refused_writes import READ_ONLY
from personal_server.storage.sql.care.faults import DamagedTable
from personal_server.storage.sql.fixed_tables import SourceRow
from personal_server.storage.sqlite.database import Opening, translated
from personal_server.storage.sqlite.file_claims import BUSY_MS

_OF_SOURCE = re.compile(r"(?P<kind>[rhwfdg])(?P<number>\d+)(_\w+)?")
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rootpage"
_SOURCE = (
    f"SELECT {SourceRow.connection_id}, {SourceRow.stream} FROM {SourceRow.table}"  # noqa: S608
    f" WHERE {SourceRow.tables} = ?"
)


def damaged_tables(path: Path) -> list[DamagedTable]:
    """Read every page and index; none where all are sound.  Raises: StorageUnavailable."""
    if not os.access(path, os.W_OK):
        return _damaged_tables(Opening.for_reading(path, READ_ONLY))
    try:
        return _damaged_tables(Opening(str(path)))
    except StorageReadOnly as refusal:
        return _damaged_tables(Opening.for_reading(path, str(refusal.members["reason"])))


def _damaged_tables(opening: Opening) -> list[DamagedTable]:
    with translated(), closing(opening.connect()) as driver:
        driver.set_busy_timeout(BUSY_MS)
        untyped: Any = driver  # the driver's own stub names a type that Python 3.11 lacks
        run: Callable[..., Iterator[tuple[Any, ...]]] = untyped.execute
        try:
            if _is_sound(run, "1"):
                return []
            names = [str(name) for (name,) in run(_TABLES)]
        except (apsw.CorruptError, apsw.NotADBError):
            return [DamagedTable()]
        damaged = [_named(run, name) for name in names if not _is_sound(run, name)]
        return damaged or [DamagedTable()]


def _is_sound(run: Callable[..., Iterator[tuple[Any, ...]]], name: str) -> bool:
    try:
        return [text for (text,) in run(f"PRAGMA integrity_check({name})")] == ["ok"]
    except apsw.CorruptError:
        return False


def _named(run: Callable[..., Iterator[tuple[Any, ...]]], name: str) -> DamagedTable:
    match = _OF_SOURCE.fullmatch(name)
    if match is None:
        return DamagedTable(name)
    kind = match["kind"]
    try:
        sources = [(str(cid), str(stream)) for cid, stream in run(_SOURCE, (int(match["number"]),))]
    except (apsw.CorruptError, UnicodeDecodeError):
        sources = []
    source = sources[0] if sources else ("", "")
    return DamagedTable(name, kind, *source, is_index=name == f"w{match['number']}")
