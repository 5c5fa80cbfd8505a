"""What a database file holds that no store of ours makes: such a file may have been tampered with.

Rule: nothing of the file is run or changed by looking; a trigger would run with the first write.
"""

from __future__ import annotations

import re
from pathlib import Path

import apsw

# Tables of a source, by its number: records, their texts, days, groups, and the index of words (`f`
# in the first release) with the tables that SQLite keeps for it.
_OF_SOURCE = re.compile(r"[rhdg](\d+)|[wf](\d+)(?:_(?:data|idx|docsize|config))?")
_WORD_INDEX = re.compile(r"CREATE VIRTUAL TABLE [wf]\d+ USING fts5 ?\(")


def code_in(path: Path) -> list[str]:
    """Names of what would run by itself: triggers, views, virtual tables but our own.

    Raises: ValueError, where this is no database.
    """
    return [
        name
        for kind, name, statement in _schema(path)
        if kind not in ("table", "index")
        or (_is_virtual(statement) and not _WORD_INDEX.match(statement))
    ]


def foreign_tables(path: Path, known: Path) -> list[str]:
    """Names of tables that are neither in another database of ours nor of a source in this one.

    Raises: ValueError, where this is no database.
    """
    ours = {name for kind, name, _ in _schema(known) if kind == "table"}
    numbers = _rows(path, "SELECT tables FROM sources UNION SELECT tables FROM rebuilds")
    sources = {str(number) for (number,) in numbers}
    return [
        name
        for kind, name, _ in _schema(path)
        if kind == "table"
        and name not in ours
        and not name.startswith("sqlite_")  # SQLite itself lets nobody make one
        and not _is_of_source(name, sources)
    ]


def _is_of_source(name: str, sources: set[str]) -> bool:
    match = _OF_SOURCE.fullmatch(name)
    return match is not None and (match[1] or match[2]) in sources


def _is_virtual(statement: str) -> bool:
    return statement.lstrip().upper().startswith("CREATE VIRTUAL")


def _schema(path: Path) -> list[tuple[str, str, str]]:
    rows = _rows(path, "SELECT type, name, sql FROM sqlite_master")
    return [(str(kind), str(name), str(statement or "")) for kind, name, statement in rows]


def _rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    """Raises: ValueError."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            return list(connection.execute(statement))  # pyright: ignore[reportUnknownMemberType]
        finally:
            connection.close()
    except apsw.Error:
        raise ValueError from None
