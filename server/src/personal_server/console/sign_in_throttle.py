"""A limit on guessing: failed sign-ins and wrong device codes, counted in memory.

Source: docs/contract/authorization-server.md 17.  Sign-in links are not affected: who holds the
store is the owner.
"""

from __future__ import annotations

from collections.abc import Callable

from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.keyed_values import ValueSpace
from personal_server.domain.own_values import OwnSpace
from personal_server.web.failed_attempts import failures_in
from personal_server.web.failed_attempts import refuse_until as _refuse_until
from personal_server.web.limits import ALL, MINUTE_NS


class SignInThrottle:
    """From the 5th failure in 15 minutes a delay doubling from 1 s to 15 min; 60 an hour in all.

    An attempt counts as failed before its password is looked at, so that many at once are no way
    around, and is forgiven if the password is right.  A browser that signed in before counts by
    itself and waits a minute at most: what others try never keeps it out.
    """

    def __init__(self, clock: Callable[[], int], space: ValueSpace | None = None) -> None:
        kept = space or OwnSpace()
        self._clock = clock
        self._each = failures_in(kept, "sign_in.each", clock, 15 * MINUTE_NS, 64)
        self._all = failures_in(kept, "sign_in.all", clock, 60 * MINUTE_NS, 60)

    def attempt(self, address: str, known_browser: str | None = None) -> None:
        """Count one more.  Raises: RateLimitExceeded."""
        each = known_browser or address
        longest_ns = MINUTE_NS if known_browser else 15 * MINUTE_NS
        with self._each.lock, self._all.lock:
            until = self._until(each, longest_ns)
            if known_browser is None:
                everyone = self._all.recent(ALL)
                if len(everyone) >= 60:
                    until = max(until, everyone[0] + 60 * MINUTE_NS)
            _refuse_until(until, self._clock())
            self._each.add(each)
            if known_browser is None:
                self._all.add(ALL)

    def forgive(self, address: str, known_browser: str | None = None) -> None:
        """The attempt was the owner's."""
        with self._each.lock, self._all.lock:
            self._each.forgive(known_browser or address)
            if known_browser is None:
                self._all.forgive(ALL)

    def _until(self, key: str, longest_ns: int) -> int:
        failed = self._each.recent(key)
        if len(failed) < 5:
            return 0
        return failed[-1] + min(2 ** (len(failed) - 5) * NANOSECONDS, longest_ns)
