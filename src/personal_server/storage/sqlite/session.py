"""One driver connection with typed calls: the only place that knows the driver's signatures."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import apsw

PROGRESS_STEPS = 20_000

Value = int | float | str | bytes | None
Line = tuple[Any, ...]
Found = TypeVar("Found")


class Session:
    """A connection inside a transaction.  Cursors are read to their end before the next write."""

    def __init__(
        self, driver: apsw.Connection, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.driver = driver
        self._monotonic = monotonic
        self._end = math.inf
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

    def limit(self, timeout_seconds: float | None) -> None:
        """Interrupt statements from that many seconds after now (`None`: never)."""
        self._end_at(math.inf if timeout_seconds is None else self._monotonic() + timeout_seconds)

    def attempt(self, timeout_seconds: float, read: Callable[[], Found]) -> Found | None:
        """What reads find that have less time than the rest; `None` when it was too little."""
        end = self._end
        self._end_at(min(end, self._monotonic() + timeout_seconds))
        try:
            return read()
        except apsw.InterruptError:
            if self._monotonic() > end:
                raise
            return None
        finally:
            self._end_at(end)

    def _end_at(self, end: float) -> None:
        self._end = end
        overdue = None if end == math.inf else lambda: self._monotonic() > end
        self.driver.set_progress_handler(overdue, PROGRESS_STEPS)
