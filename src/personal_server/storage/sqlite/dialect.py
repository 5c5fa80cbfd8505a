"""How SQLite says what databases say differently."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, cast

import apsw

from personal_server.domain.values import Comparable, ValueKind, bound, comparable
from personal_server.storage.meaning import fold
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.word_index import MARK, STEM_MARK
from personal_server.storage.tables import ColumnKind, StoredTable

_TYPES = {
    ColumnKind.TEXT: "TEXT",
    ColumnKind.INTEGER: "INTEGER",
    ColumnKind.FLAG: "INTEGER",
    ColumnKind.BYTES: "BLOB",
    ColumnKind.SCALAR: "ANY",
    ColumnKind.JSON: "TEXT",
}


class SqliteDialect:
    """Field names are `[A-Za-z0-9_-]`, so that they stand in a JSON path without escapes."""

    numbered_key = "INTEGER PRIMARY KEY AUTOINCREMENT"
    find_table = "SELECT 1 FROM sqlite_schema WHERE name = ?"
    find_column = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"

    def column_type(self, kind: ColumnKind) -> str:
        """One of the types that STRICT tables know."""
        return _TYPES[kind]

    def table_options(self, *, rowid: bool) -> str:
        """Values have the type of their column; lines lie by their key where they can."""
        return " STRICT" if rowid else " STRICT, WITHOUT ROWID"

    def replacing(self, insert: str, table: StoredTable) -> str:  # noqa: ARG002 (SQLite knows it)
        """The other row goes, whichever key or index they share."""
        return insert.replace("INSERT", "INSERT OR REPLACE", 1)

    def ignoring(self, insert: str) -> str:
        """No row with the same key is a reason to fail."""
        return insert.replace("INSERT", "INSERT OR IGNORE", 1)

    def word_index(self, name: str) -> str:
        """The index keeps words, not texts, and forgets them one id at a time."""
        return (
            f"CREATE VIRTUAL TABLE {name} USING fts5 (words, content='', contentless_delete=1,"
            f" tokenize=\"ascii tokenchars '{MARK}{STEM_MARK}'\")"
        )

    def parts_of(self, table: str) -> tuple[str, ...]:
        """A word index lies in tables of its own."""
        return (table,) if table[0] in "rh" else (f"{table}_data", f"{table}_docsize")

    def walking(self, index: str) -> str:
        """The planner obeys, or the statement fails."""
        return f" INDEXED BY {index}"

    def unsteering(self, comparison: str) -> str:
        """An expression is no column, and no index serves it."""
        return f"+{comparison}"

    def values(self, parameter: str) -> str:
        """Elements of the array."""
        return f"(SELECT value FROM json_each({parameter}))"  # noqa: S608

    def is_json(self, text: str) -> str:
        """The parsed text is kept for the functions that follow."""
        return f"json_valid({text})"

    def string_at(self, text: str, field: str) -> str:
        """A JSON null is no SQL null until it is asked for its type."""
        path = f"'$.\"{field}\"'"
        return f"CASE json_type({text}, {path}) WHEN 'text' THEN json_extract({text}, {path}) END"

    def folded(self, text: str) -> str:
        """SQLite's own `lower` knows ASCII only."""
        return f"pdpp_fold({text})"

    def found_in(self, text: str) -> str:
        """In code points."""
        return f"pdpp_find({text}, ?)"

    def comparable_at(self, text: str, field: str, kind: ValueKind) -> str:
        """Booleans by their type; all else by the function that fills columns."""
        path = f"'$.\"{field}\"'"
        if kind is ValueKind.BOOLEAN:
            return f"CASE json_type({text}, {path}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
        # bytes that are no text cannot be handed to a function as one
        value = f"json_extract({text}, {path})"
        found = (
            f"CASE json_type({text}, {path}) WHEN 'text' THEN CAST({value} AS BLOB)"
            f" WHEN 'integer' THEN {value} WHEN 'real' THEN {value} END"
        )
        return f"pdpp_comparable({found}, '{kind.value}')"

    def matches(self, index: str) -> str:
        """The table stands for its only column."""
        return f"{index} MATCH ?"

    def bound(self, value: Comparable | None) -> Value:
        """Numbers beyond 64 bits are doubles."""
        return bound(value)


DIALECT = SqliteDialect()


# Functions of our own that statements call: digests, folded search, word statistics.


def register(connection: apsw.Connection) -> None:
    """Make the functions known to a connection."""
    driver = cast("Any", connection)
    scalar: Callable[..., None] = driver.create_scalar_function
    scalar("pdpp_sha256", _sha256, 1, deterministic=True)
    scalar("pdpp_find", _find, 2, deterministic=True)
    scalar("pdpp_fold", _fold, 1, deterministic=True)
    scalar("pdpp_comparable", _comparable, 2, deterministic=True)
    driver.register_fts5_function("pdpp_hits", _hits)
    driver.register_fts5_function("pdpp_all_hits", _all_hits)


def _sha256(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _find(text: str | None, sought: str) -> int | None:
    """Where folded text begins to match, in code points; -1 if nowhere."""
    return None if text is None else fold(text).find(fold(sought))


def _fold(text: str | None) -> str | None:
    return None if text is None else fold(text)


def _comparable(value: object, kind: str) -> Value:
    """Of a JSON value, a text of it as bytes."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return bound(comparable(value, ValueKind(kind)))


def _hits(api: apsw.FTS5ExtensionApi, title: int, entries: int) -> int:
    """Occurrences of a term in all its fields; in the field `title` (or -1) they count twice.

    It is asked for as so many phrases in each field.
    """
    if title < 0:
        return api.inst_count
    return api.inst_count + _occurrences(api, title * entries, entries)


def _all_hits(api: apsw.FTS5ExtensionApi, fields: int, title: int, entries: str) -> str:
    """The same for each of several terms, with blanks between; `entries` are a list likewise."""
    found: list[int] = []
    first = 0
    for size in map(int, entries.split()):
        count = _occurrences(api, first, fields * size)
        if title >= 0:
            count += _occurrences(api, first + title * size, size)
        found.append(count)
        first += fields * size
    return " ".join(map(str, found))


def _occurrences(api: apsw.FTS5ExtensionApi, first: int, size: int) -> int:
    """Of some phrases that stand beside each other."""
    return sum(len(api.phrase_column_offsets(first + n, 0)) for n in range(size))
