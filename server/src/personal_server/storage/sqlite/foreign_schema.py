"""What a database file holds that no store of ours makes: such a file may have been tampered with.

Rule: nothing of the file is run or changed by looking; a trigger would run with the first write,
and a default, a constraint or a shared page would undo one.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import apsw

# Tables of a source, by its number: records, their texts, days, groups, and the index of words (`f`
# in the first release) with the tables that SQLite keeps for it.
_OF_SOURCE = re.compile(r"[rhdg](\d+)|[wf](\d+)(?:_(?:data|idx|docsize|config))?")
_WORD_INDEX = re.compile(r"CREATE VIRTUAL TABLE [wf]\d+ USING fts5 ?\(")
# Of these only names, types and keys: no default, constraint or expression of anybody.
_NAMES = r"\w+(?:, ?\w+)*"
_COLUMN = r"\w+(?: (?:INTEGER|TEXT|BLOB))?(?: PRIMARY KEY| NOT NULL)? ?"
_SOURCE_STATEMENTS = (
    rf"CREATE TABLE NAME ?\({_COLUMN}(?:, ?{_COLUMN})*(?:, ?PRIMARY KEY ?\({_NAMES}\))?\)"
    r"(?: STRICT)?,?(?: WITHOUT ROWID)?",
    rf"CREATE VIRTUAL TABLE NAME USING fts5 ?\({_NAMES}, content='', contentless_delete=1,"
    r" tokenize=(?:\"ascii tokenchars '[:~]+'\"|'ascii')\)",
)
_SOURCE_INDEX = re.compile(rf"CREATE (?:UNIQUE )?INDEX (r\d+)_(\w+) ON \1 \({_NAMES}\)")
_OF_SQLITE = {
    "sqlite_sequence": "CREATE TABLE sqlite_sequence(name,seq)",
    "sqlite_stat1": "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "sqlite_stat4": "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
}
_BRACKETS = {"(": 1, ")": -1}

Statement = tuple[str, tuple[str, ...], str]
"""What stands before the brackets, between their commas in any order, and behind them."""


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


def foreign_schema(path: Path, known: Path) -> list[str]:
    """Names of tables and indexes that are neither made as in another database of ours of the same
    layout, nor as those of a source in this one; and of those that share a page.

    Raises: ValueError, where this is no database.
    """
    ours = {name: _parsed(statement) for _, name, statement in _schema(known)}
    numbers = _rows(path, "SELECT tables FROM sources UNION SELECT tables FROM rebuilds")
    sources = {str(number) for (number,) in numbers}
    foreign = [
        name
        for kind, name, statement in _schema(path)
        if not (
            _parsed(statement) == ours.get(name)
            or _is_of_source(kind, name, statement, sources)
            or _is_of_sqlite(kind, name, statement)
        )
    ]
    return foreign + _sharing(path)


def _is_of_source(kind: str, name: str, statement: str, sources: set[str]) -> bool:
    if kind == "index":
        index = _SOURCE_INDEX.fullmatch(statement)
        return index is not None and name == f"{index[1]}_{index[2]}" and index[1][1:] in sources
    match = _OF_SOURCE.fullmatch(name)
    if match is None or (match[1] or match[2]) not in sources:
        return False
    named = statement.replace(f"'{name}'", name).replace(f" {name}", " NAME", 1)
    return any(re.fullmatch(pattern, named) for pattern in _SOURCE_STATEMENTS)


def _is_of_sqlite(kind: str, name: str, statement: str) -> bool:
    """What SQLite makes unasked; an index for a key has no statement of its own."""
    if kind == "index":
        return name.startswith("sqlite_autoindex_") and not statement
    return _OF_SQLITE.get(name) == statement


def _sharing(path: Path) -> list[str]:
    """What lies on one page with something else, so that a change of one changes the other."""
    rows = _rows(path, "SELECT name, rootpage FROM sqlite_master WHERE rootpage <> 0")
    pages = Counter(page for _, page in rows)
    return [str(name) for name, page in rows if pages[page] > 1]


def _parsed(statement: str) -> Statement:
    """A statement of ours; columns that later versions added stand in the order they came.

    In: `CREATE TABLE t (b TEXT, a TEXT) STRICT`. Out: `"CREATE TABLE t "`, `("a TEXT", "b TEXT")`
    and `") STRICT"`.
    """
    text = " ".join(statement.split())
    begin, end = text.find("("), text.rfind(")")
    depth, part, parts = 0, "", list[str]()
    for character in text[begin + 1 : end] if begin >= 0 else "":
        depth += _BRACKETS.get(character, 0)
        if character == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += character
    return text[:begin], tuple(sorted([*parts, part.strip()])), text[end:]


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
