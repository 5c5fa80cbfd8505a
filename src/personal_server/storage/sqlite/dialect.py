"""How SQLite says what databases say differently."""

from __future__ import annotations

from collections.abc import Sequence

from personal_server.domain.values import Comparable, ValueKind, bound
from personal_server.storage.sqlite.session import Value


class SqliteDialect:
    """Field names are `[A-Za-z0-9_-]`, so that they stand in a JSON path without escapes."""

    def values(self, parameter: str) -> str:
        """See the port."""
        return f"(SELECT value FROM json_each({parameter}))"  # noqa: S608

    def string_at(self, text: str, field: str) -> str:
        """See the port."""
        path = f"'$.\"{field}\"'"
        return f"CASE json_type({text}, {path}) WHEN 'text' THEN json_extract({text}, {path}) END"

    def comparable_at(self, text: str, field: str, kind: ValueKind) -> str:
        """See the port."""
        path = f"'$.\"{field}\"'"
        if kind is ValueKind.BOOLEAN:
            return f"CASE json_type({text}, {path}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
        return f"pdpp_comparable(json_extract({text}, {path}), '{kind.value}')"

    def with_words(self, index: str, column: str, words: Sequence[str]) -> tuple[str, str]:
        """See the port.  Words are letters and digits only."""
        sql = f"(SELECT rowid FROM {index} WHERE {index} MATCH ?)"  # noqa: S608
        return sql, f'{column} : "{" ".join(words)}"'

    def bound(self, value: Comparable | None) -> Value:
        """See the port."""
        return bound(value)


DIALECT = SqliteDialect()
