"""Token buckets in process memory.  Source: AS contract 17."""

from __future__ import annotations

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
