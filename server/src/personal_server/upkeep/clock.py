"""The clock: noticing that it jumped, and for how long nothing irreversible follows it.

Rule: a clock is trusted while it goes on from the newest instant that was trusted.  After a jump,
forward or back, what cannot be undone waits until the server ran for a day with a clock that goes
on from there, or for the owner's word; a machine that was off for a year jumps legally, and a
clock that comes back is trusted again at once.
Source: docs/contract/resource-server.md 1.7.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.domain.stored import ClockNote

# A machine that sleeps over a week's end, or a month's first backup disk, is no jump.
JUMP_NS = 7 * DAY_NANOSECONDS
BACK_NS = 300 * NANOSECONDS
STEADY_NS = DAY_NANOSECONDS
NOTED_EVERY_NS = 3_600 * NANOSECONDS
_log = logging.getLogger(__name__)


class ClockStore(Protocol):
    """Where the note is kept."""

    def clock_note(self) -> ClockNote | None:
        """The note, `None` where nothing was ever written."""
        ...

    def keep_clock_note(self, note: ClockNote) -> None:
        """Replace the note of the latest time that was seen."""
        ...


def looked(note: ClockNote, now_ns: int, ran_ns: int) -> ClockNote:
    """The note after another look; the server ran for `ran_ns` since the last one."""
    if _goes_on(note.seen_ns, now_ns):
        return ClockNote(max(note.seen_ns, now_ns))
    if note.jumped_at_ns is None or not _goes_on(note.last_ns, now_ns):
        return ClockNote(note.seen_ns, now_ns, now_ns)
    steady_ns = note.steady_ns + ran_ns
    if steady_ns >= STEADY_NS:
        return ClockNote(now_ns)
    return ClockNote(note.seen_ns, note.jumped_at_ns, max(note.last_ns, now_ns), steady_ns)


class ClockWatch:
    """Asked before anything irreversible is done by the clock."""

    def __init__(
        self, store: ClockStore, clock: Callable[[], int], monotonic_ns: Callable[[], int]
    ) -> None:
        self._store = store
        self._clock = clock
        self._monotonic_ns = monotonic_ns
        self._looked_at = monotonic_ns()
        self._lock = threading.Lock()

    def is_trusted(self) -> bool:
        """Look, and say whether what the clock says may be acted on for good."""
        with self._lock:
            looked_at = self._monotonic_ns()
            ran_ns, self._looked_at = looked_at - self._looked_at, looked_at
            now_ns = self._clock()
            before = self._store.clock_note()
            after = looked(before or ClockNote(now_ns), now_ns, ran_ns)
            if before is None or _is_news(before, after):
                self._store.keep_clock_note(after)
        if after.jumped_at_ns is not None and (before is None or before.jumped_at_ns is None):
            _log.warning(
                "the clock jumped: for a day, the clock ends and deletes nothing; "
                "if the clock is right, run: pdpp admin accept-clock"
            )
        return after.jumped_at_ns is None

    def jumped_at_ns(self) -> int | None:
        """What the clock said when it jumped, while it is not trusted."""
        note = self._store.clock_note()
        return None if note is None else note.jumped_at_ns


def accept_clock(store: ClockStore, now_ns: int) -> bool:
    """The owner's word that the clock is right; whether it was in doubt."""
    note = store.clock_note()
    store.keep_clock_note(ClockNote(now_ns))
    return note is not None and not _goes_on(note.seen_ns, now_ns)


def _goes_on(from_ns: int, now_ns: int) -> bool:
    return from_ns - BACK_NS <= now_ns <= from_ns + JUMP_NS


def _is_news(before: ClockNote, after: ClockNote) -> bool:
    """An idle server writes nothing each minute."""
    if after.jumped_at_ns is None and before.jumped_at_ns is None:
        return after.seen_ns - before.seen_ns >= NOTED_EVERY_NS
    return True
