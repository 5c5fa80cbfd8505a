"""One driver connection with typed calls: the only place that knows the driver's signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import apsw

Value = int | float | str | bytes | None
Line = tuple[Any, ...]


class Session:
    """A connection inside a transaction.  Cursors are read to their end before the next write."""

    def __init__(self, driver: apsw.Connection) -> None:
        self.driver = driver
        untyped: Any = driver  # the driver's own stub names a type that Python 3.11 lacks
        self._execute: Callable[..., Iterator[Line]] = untyped.execute
        self._executemany: Callable[..., Iterator[Line]] = untyped.executemany
        self.pragma: Callable[[str, int | str | bool], object] = untyped.pragma

    def run(self, sql: str, params: Sequence[Value] = ()) -> Iterator[Line]:
        """Execute, and give the lines as they come."""
        return self._execute(sql, params)

    def rows(self, sql: str, params: Sequence[Value] = ()) -> list[Line]:
        """Execute, and give all lines."""
        return list(self._execute(sql, params))

    def first(self, sql: str, params: Sequence[Value] = ()) -> Line | None:
        """The first line, if there is one."""
        for line in self._execute(sql, params):
            return line
        return None

    def value(self, sql: str, params: Sequence[Value] = ()) -> Any:
        """The first column of the first line, `None` without lines."""
        line = self.first(sql, params)
        return None if line is None else line[0]

    def many(self, sql: str, params: Iterable[Sequence[Value]]) -> None:
        """Execute once per parameter list."""
        for _ in self._executemany(sql, params):
            pass

    @property
    def changed(self) -> int:
        """How many lines the last statement wrote."""
        return self.driver.changes()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.driver.in_transaction
