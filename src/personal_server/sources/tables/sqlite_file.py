"""The tables of a SQLite file that a stranger made, read without trust in its schema.

Source: sqlite.org/security.html, "Untrusted SQLite Database Files".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import apsw

from personal_server.sources.common.bookmark import BOOKMARK
from personal_server.sources.common.text import decoded

SQLITE = b"SQLite format 3\x00"
LARGEST_VALUE_BYTES = 16 * 1024 * 1024
MOST_COLUMNS = 500
Cell = int | float | str | bytes | None
_ALLOWED = frozenset({apsw.SQLITE_SELECT, apsw.SQLITE_READ, apsw.SQLITE_FUNCTION})
_SWITCHES = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION: 0,
}
_LIMITS = {
    apsw.SQLITE_LIMIT_LENGTH: LARGEST_VALUE_BYTES,
    apsw.SQLITE_LIMIT_COLUMN: MOST_COLUMNS,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_ROW_NAMES = ("rowid", "_rowid_", "oid")
_BEFORE_ALL = -(2**63)
_TABLES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    " AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
)
# Columns of the answers to `PRAGMA table_xinfo` and `PRAGMA table_list`.
_KEY, _HIDDEN, _WITHOUT_ROW_NUMBERS = 5, 6, 4


class SqliteUnreadable(Exception):
    """The file is damaged, encrypted, or asks for what is refused."""


class RowTooLarge(Exception):
    """A row holds, or makes, a value beyond the limit."""


@dataclass(frozen=True, slots=True)
class SqliteTable:
    """One table: its columns, the one that names a row, and how its rows are numbered."""

    name: str
    columns: tuple[str, ...]
    key: str | None
    row_name: str | None
    row_count: int


def tables_in(path: Path) -> list[SqliteTable]:
    """The tables of a file by name. Raises: SqliteUnreadable."""
    try:
        with closing(_opened(path)) as database:
            listed = list(_asked(database, _TABLES))
            return [_table(database, str(name)) for (name,) in listed]
    except (apsw.Error, UnicodeDecodeError):
        raise SqliteUnreadable from None


def rows_of(path: Path, table: SqliteTable) -> Iterator[Sequence[Cell] | RowTooLarge]:
    """The rows of a table in their order. Raises: SqliteUnreadable, where the rest is damaged."""
    try:
        with closing(_opened(path)) as database:
            if table.row_name is None:
                yield from _plain_rows(database, table)
            else:
                yield from _numbered_rows(database, table, table.row_name)
    except apsw.Error:
        raise SqliteUnreadable from None


def _opened(path: Path) -> apsw.Connection:
    """A database opened for reading only and as it is, for nothing but reading its tables."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    database = apsw.Connection(f"{path.resolve().as_uri()}?mode=ro&immutable=1", flags=flags)
    for switch, value in _SWITCHES.items():
        database.config(switch, value)
    for limit, most in _LIMITS.items():
        database.limit(limit, most)
    list(_asked(database, "PRAGMA cell_size_check = 1"))
    database.authorizer = _authorized
    return database


def _asked(database: apsw.Connection, statement: str, *values: int) -> Iterator[Sequence[Cell]]:
    """The rows of a statement, typed as SQLite's values are."""
    run = cast("Callable[[str, tuple[int, ...]], Iterator[Sequence[Cell]]]", database.execute)  # pyright: ignore[reportUnknownMemberType]
    return run(statement, values)


def _authorized(
    action: int, first: str | None, _second: str | None, _database: str | None, _by: str | None
) -> int:
    asks_columns = action == apsw.SQLITE_PRAGMA and first in ("table_xinfo", "table_list")
    return apsw.SQLITE_OK if action in _ALLOWED or asks_columns else apsw.SQLITE_DENY


def _table(database: apsw.Connection, name: str) -> SqliteTable:
    described = list(_asked(database, f"PRAGMA table_xinfo({quoted(name)})"))
    shown = [each for each in described if each[_HIDDEN] != 1]
    columns = tuple(str(each[1]) for each in shown)
    keys = [str(each[1]) for each in shown if each[_KEY]]
    [listed] = _asked(database, f"PRAGMA table_list({quoted(name)})")
    taken = {column.lower() for column in columns}
    row_name = next((each for each in _ROW_NAMES if each not in taken), None)
    [[count]] = _asked(database, f"SELECT count(*) FROM {quoted(name)}")  # noqa: S608 (quoted)
    key = keys[0] if len(keys) == 1 else None
    row_name = None if listed[_WITHOUT_ROW_NUMBERS] else row_name
    return SqliteTable(name, columns, key, row_name, int(str(count)))


def _plain_rows(database: apsw.Connection, table: SqliteTable) -> Iterator[Sequence[Cell]]:
    try:
        yield from _asked(database, f"SELECT * FROM {quoted(table.name)}")  # noqa: S608 (quoted)
    except UnicodeDecodeError:
        raise SqliteUnreadable from None


def _numbered_rows(
    database: apsw.Connection, table: SqliteTable, row_name: str
) -> Iterator[Sequence[Cell] | RowTooLarge]:
    """Rows by their numbers, so that one that cannot be read costs no other."""
    own = f"FROM {quoted(table.name)} WHERE {row_name}"
    every = f"SELECT {row_name}, * {own} >= ? ORDER BY {row_name}"
    at = _BEFORE_ALL
    while True:
        try:
            for number, *cells in _asked(database, every, at):
                at = int(str(number)) + 1
                BOOKMARK.goes_on()
                yield cells
        except apsw.TooBigError:
            yield RowTooLarge()
        except UnicodeDecodeError:
            yield _as_written(database, table, own, _number(database, own, row_name, at))
        else:
            return
        at = _number(database, own, row_name, at) + 1


def _number(database: apsw.Connection, own: str, row_name: str, at: int) -> int:
    """The number of the first row from one on. Raises: SqliteUnreadable."""
    for (number,) in _asked(database, f"SELECT min({row_name}) {own} >= ?", at):
        if isinstance(number, int):
            return number
    raise SqliteUnreadable


def _as_written(
    database: apsw.Connection, table: SqliteTable, own: str, number: int
) -> Sequence[Cell]:
    """A row whose text is not UTF-8: its bytes are decoded as those of any file."""
    cells = [
        f"typeof({name}) = 'text', CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB)"
        f" ELSE {name} END"
        for name in map(quoted, table.columns)
    ]
    [found] = _asked(database, f"SELECT {', '.join(cells)} {own} = ?", number)
    pairs = zip(found[::2], found[1::2], strict=True)
    return [decoded(c) if is_text and isinstance(c, bytes) else c for is_text, c in pairs]


def quoted(name: str) -> str:
    """A name as SQL writes it. Raises: SqliteUnreadable."""
    if "\x00" in name:
        raise SqliteUnreadable
    return '"' + name.replace('"', '""') + '"'
