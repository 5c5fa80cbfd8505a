"""The authorization store in memory: what the port means, and a quick store for tests."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from personal_server.storage.authorization import After, AuditRow, Before, NotNull, R, Row

Tables = dict[type[Row], list[Row]]


def meets(row: Row, where: dict[str, object]) -> bool:
    """Whether a row meets every condition."""
    return all(_holds(getattr(row, column), condition) for column, condition in where.items())


def _holds(value: object, condition: object) -> bool:
    match condition:
        case Before(bound):
            return isinstance(value, int) and value <= bound
        case After(bound):
            return isinstance(value, int) and value > bound
        case NotNull():
            return value is not None
        case _:
            return value == condition


class MemoryTransaction:
    """Rows in lists; linear, and plain to read."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def get(self, table: type[R], **key: object) -> R | None:
        """The only row that meets the conditions."""
        found = [row for row in self._of(table) if meets(row, key)]
        if len(found) > 1:
            raise LookupError(f"Several rows of {table.table}.")
        return found[0] if found else None

    def rows(
        self,
        table: type[R],
        *,
        order: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        **where: object,
    ) -> list[R]:
        """The rows that meet the conditions, in order."""
        by = (order,) if order else table.key
        found = [row for row in self._of(table) if meets(row, where)]
        found.sort(key=lambda row: tuple(getattr(row, column) for column in by), reverse=descending)
        return found[:limit]

    def count(self, table: type[Row], **where: object) -> int:
        """How many rows meet the conditions."""
        return sum(meets(row, where) for row in self._of(table))

    def insert(self, row: Row) -> None:
        """Add a row, once."""
        rows = self._of(type(row))
        if isinstance(row, AuditRow) and not row.event_id:
            row = replace(row, event_id=len(rows) + 1)
        for columns in (row.key, *((column,) for column in row.unique)):
            _refuse_duplicate(rows, row, columns)
        rows.append(row)

    def change(self, table: type[Row], to: Mapping[str, object], **where: object) -> int:
        """Set columns where the conditions hold."""
        rows = self._of(table)
        hits = [index for index, row in enumerate(rows) if meets(row, where)]
        for index in hits:
            rows[index] = replace(rows[index], **to)  # pyright: ignore[reportArgumentType]
        return len(hits)

    def delete(self, table: type[Row], **where: object) -> int:
        """Remove the rows that meet the conditions."""
        rows = self._of(table)
        kept = [row for row in rows if not meets(row, where)]
        gone = len(rows) - len(kept)
        rows[:] = kept
        return gone

    def _of(self, table: type[R]) -> list[R]:
        return self._tables.setdefault(table, [])  # pyright: ignore[reportReturnType]


def _refuse_duplicate(rows: list[Row], row: Row, columns: tuple[str, ...]) -> None:
    values = {column: getattr(row, column) for column in columns}
    if None in values.values():
        return
    if any(meets(other, values) for other in rows):
        raise LookupError(f"Duplicate {columns} in {row.table}.")


class MemoryAuthorizationStore:
    """One lock, one dictionary; a failed block leaves nothing behind."""

    def __init__(self, subject_id: str) -> None:
        self.subject_id = subject_id
        self._lock = threading.RLock()
        self._tables: Tables = {}

    @contextmanager
    def read(self) -> Generator[MemoryTransaction]:
        """A consistent view."""
        with self._lock:
            yield MemoryTransaction(self._tables)

    @contextmanager
    def write(self) -> Generator[MemoryTransaction]:
        """A transaction on a draft that replaces the tables when it succeeds."""
        with self._lock:
            draft = {table: list(rows) for table, rows in self._tables.items()}
            yield MemoryTransaction(draft)
            self._tables = draft
