"""Throttles of guessing: failed sign-ins and wrong device codes, counted in process memory.

Source: AS contract 17.  Sign-in links are not affected: who holds the store is the owner.
"""

from __future__ import annotations

from collections.abc import Callable

from personal_server.domain.values import NANOSECONDS
from personal_server.web.limits import ALL, MINUTE_NS, Failures
from personal_server.web.limits import refuse_until as _refuse_until


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
