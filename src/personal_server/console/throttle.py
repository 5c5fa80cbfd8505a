"""Throttles of guessing: failed sign-ins and wrong device codes, counted in process memory.

Source: AS contract 17.  Sign-in links are not affected: who holds the store is the owner.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from personal_server.domain.values import NANOSECONDS
from personal_server.errors import RateLimitExceeded

MINUTE_NS = 60 * NANOSECONDS
ALL = "*"
_MAX_KEYS = 10_000


@dataclass(slots=True)
class Failures:
    """Instants of failures by key, the newest `kept` within `window_ns`."""

    clock: Callable[[], int]
    window_ns: int
    kept: int
    _at: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def recent(self, key: str) -> list[int]:
        """Failures of a key that still count, oldest first."""
        oldest = self.clock() - self.window_ns
        with self._guard:
            return [at for at in self._at.get(key, ()) if at > oldest]

    def add(self, key: str) -> None:
        """Count one more."""
        recent = [*self.recent(key), self.clock()][-self.kept :]
        with self._guard:
            if len(self._at) >= _MAX_KEYS and key not in self._at:
                del self._at[next(iter(self._at))]
            self._at[key] = recent


class SignInThrottle:
    """From the 5th failure in 15 minutes a delay doubling from 1 s to 15 min; 60 an hour in all."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._each = Failures(clock, 15 * MINUTE_NS, 64)
        self._all = Failures(clock, 60 * MINUTE_NS, 60)

    def check(self, address: str) -> None:
        """Raise: RateLimitExceeded."""
        each, everyone = self._each.recent(address), self._all.recent(ALL)
        until = 0
        if len(each) >= 5:
            until = each[-1] + min(2 ** (len(each) - 5) * NANOSECONDS, 15 * MINUTE_NS)
        if len(everyone) >= 60:
            until = max(until, everyone[0] + 60 * MINUTE_NS)
        _refuse_until(until, self._clock())

    def failed(self, address: str) -> None:
        """Count a failure."""
        self._each.add(address)
        self._all.add(ALL)


class UserCodeThrottle:
    """Wrong device codes: 5 in 10 minutes a session, 20 an hour in all."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._each = Failures(clock, 10 * MINUTE_NS, 5)
        self._all = Failures(clock, 60 * MINUTE_NS, 20)

    def check(self, session: str) -> None:
        """Raise: RateLimitExceeded."""
        each, everyone = self._each.recent(session), self._all.recent(ALL)
        until = each[0] + 10 * MINUTE_NS if len(each) >= 5 else 0
        if len(everyone) >= 20:
            until = max(until, everyone[0] + 60 * MINUTE_NS)
        _refuse_until(until, self._clock())

    def failed(self, session: str) -> None:
        """Count a failure."""
        self._each.add(session)
        self._all.add(ALL)


def _refuse_until(until_ns: int, now_ns: int) -> None:
    if now_ns < until_ns:
        seconds = -((now_ns - until_ns) // NANOSECONDS)
        raise RateLimitExceeded(
            "There were too many wrong tries.",
            retry_after_seconds=max(1, seconds),
            limit="sign_in",
        )
