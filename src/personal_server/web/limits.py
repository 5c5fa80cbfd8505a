"""Token buckets in process memory.  Source: docs/contract/authorization-server.md 17."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from personal_server.domain.values import NANOSECONDS
from personal_server.errors import RateLimitExceeded

MAX_KEYS = 10_000


@dataclass(slots=True)
class Bucket:
    """So many at once, so many an interval, per key.

    Units: `period_seconds` is how long `refill` tokens take to come back.
    """

    clock: Callable[[], int]
    capacity: int
    refill: int
    period_seconds: int
    _levels: dict[Hashable, tuple[float, int]] = field(
        default_factory=dict[Hashable, tuple[float, int]]
    )

    def check(self, key: Hashable) -> None:
        """Refuse when nothing is left, take nothing.  Raises: RateLimitExceeded."""
        level = self._level(key)
        if level < 1:
            wait = int((1 - level) * self.period_seconds / self.refill) + 1
            raise RateLimitExceeded(
                "Too many requests. Wait, then try again.", retry_after_seconds=wait
            )

    def take(self, key: Hashable) -> None:
        """Take one.  Raises: RateLimitExceeded."""
        self.check(key)
        self.spend(key)

    def spend(self, key: Hashable) -> None:
        """Take one, without asking."""
        self._levels[key] = (max(0.0, self._level(key) - 1), self.clock())
        if len(self._levels) > MAX_KEYS:
            self._levels = {k: v for k, v in self._levels.items() if self._level(k) < self.capacity}

    def _level(self, key: Hashable) -> float:
        level, at_ns = self._levels.get(key, (float(self.capacity), self.clock()))
        elapsed_seconds = (self.clock() - at_ns) / NANOSECONDS
        return min(self.capacity, level + elapsed_seconds * self.refill / self.period_seconds)


class Limits:
    """The limits of the OAuth endpoints."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.registration = Bucket(clock, 20, 60, 3_600)
        self.registration_all = Bucket(clock, 300, 300, 3_600)
        self.authorization = Bucket(clock, 30, 120, 3_600)
        self.fetch = Bucket(clock, 6, 6, 60)
        self.fetch_all = Bucket(clock, 60, 60, 60)
        self.token_failures = Bucket(clock, 20, 20, 600)
        self.introspection = Bucket(clock, 1_200, 1_200, 60)


# Bearers that were refused, counted by address.
#
# Rule: only a refusal is ever limited.  A good token is never limited by its address, since hosts
# share the addresses they call from.
# Source: docs/contract/resource-server.md 16; docs/contract/authorization-server.md 17.


WINDOW_SECONDS = 60
MAX_ADDRESSES = 10_000


@dataclass(slots=True)
class FailedBearers:
    """How often each address presented a bearer that was refused; per minute.

    `allowed` 0 switches the limit off.
    """

    allowed: int
    clock: Callable[[], int]
    _refusals: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def count(self, address: str) -> None:
        """One more refusal.  Raises: RateLimitExceeded, when there were too many."""
        if not self.allowed:
            return
        recent = self._recent(address)
        if len(recent) >= self.allowed:
            elapsed_seconds = (self.clock() - recent[0]) // NANOSECONDS
            raise RateLimitExceeded(
                "Too many refused tokens from this address; wait, then use a valid one.",
                retry_after_seconds=max(1, WINDOW_SECONDS - elapsed_seconds),
                limit="auth",
            )
        self._refusals[address] = [*recent, self.clock()]
        if len(self._refusals) > MAX_ADDRESSES:
            self._refusals = {a: r for a in self._refusals if (r := self._recent(a))}

    def _recent(self, address: str) -> list[int]:
        oldest = self.clock() - WINDOW_SECONDS * NANOSECONDS
        return [at for at in self._refusals.get(address, ()) if at > oldest]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a holder has left: the `RateLimit-*` headers.  Units: cost units, seconds."""

    limit: int
    remaining: int
    reset_seconds: int


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


def refuse_until(until_ns: int, now_ns: int) -> None:
    """Raises: RateLimitExceeded, with the seconds left to wait."""
    if now_ns < until_ns:
        seconds = -((now_ns - until_ns) // NANOSECONDS)
        raise RateLimitExceeded(
            "There were too many wrong tries.",
            retry_after_seconds=max(1, seconds),
            limit="sign_in",
        )
