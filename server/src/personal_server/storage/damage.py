"""Damage: what was met whose stored bytes are not sound (`checksums` says when they are).

Rule: the log says once where it is, and no value; nobody who reads waits for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from pdpp_kernel.texts import message

_log = logging.getLogger(__name__)
MEND_RECORDS = message(
    "Stored data are damaged. The owner finds out which with `pdpp doctor --data` "
    "(--repair rebuilds indexes from the records), and then imports the source "
    "again or restores a backup."
)
# More are not remembered one by one; that there is damage is.
MOST_NOTED = 1_000


class DamagedLine(NamedTuple):
    """Where a damaged record lies: the number of its tables, and of its line if that is known."""

    tables: int
    line: int | None


Damaged = DamagedLine | str
"""A record, or the id of a blob."""


class DamageNotes(msgspec.Struct):
    """Damaged records and blobs that reads met."""

    clock: Callable[[], int] = time.time_ns
    since_ns: int | None = None
    file_since_ns: int | None = None  # since when the file itself is known to be damaged
    _lock: threading.Lock = msgspec.field(default_factory=threading.Lock)
    _found: dict[Damaged, str] = msgspec.field(default_factory=dict[Damaged, str])

    def note_file(self) -> None:
        """Remember, until the server starts again, that the file itself is damaged."""
        if self.file_since_ns is None:
            self.file_since_ns = self.clock()
            _log.error("the database file is damaged: pdpp doctor --data says where")

    def note(self, damaged: Damaged, where_found: str) -> None:
        """Remember it; the first of a place (a stream and its connection, "blobs") is told."""
        with self._lock:
            is_told = where_found in self._found.values()
            if len(self._found) < MOST_NOTED:
                self._found[damaged] = where_found
            if self.since_ns is None:
                self.since_ns = self.clock()
        if not is_told:
            _log.error("damaged bytes in %s: pdpp doctor --data lists all of them", where_found)

    def known(self) -> list[Damaged]:
        """The damage that was met and has not healed since."""
        with self._lock:
            return list(self._found)

    def lines(self, tables: int) -> list[int]:
        """The lines of a source among it."""
        return [
            entry.line
            for entry in self.known()
            if isinstance(entry, DamagedLine) and entry.tables == tables and entry.line is not None
        ]

    def forget(self, healed: Iterable[Damaged]) -> None:
        """What is whole or gone."""
        with self._lock:
            for damaged in healed:
                self._found.pop(damaged, None)
            if not self._found:
                self.since_ns = None
