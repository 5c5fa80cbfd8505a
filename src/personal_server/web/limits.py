"""Limits in process memory: one token bucket, one count of failures.

Source: docs/contract/resource-server.md 16; docs/contract/authorization-server.md 17.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Network, ip_address

from personal_server.domain.values import NANOSECONDS
from personal_server.errors import RateLimitExceeded

MAX_KEYS = 10_000
MINUTE_NS = 60 * NANOSECONDS
ALL = "*"
"""The key of what is counted over all callers."""


def network_of(address: str) -> str:
    """Whose address it is, as limits count: of IPv6 the /64, since one line has all of it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv4Address):
        return str(parsed)
    mapped = parsed.ipv4_mapped
    return str(mapped or IPv6Network((parsed, 64), strict=False))


@dataclass(slots=True)
class Bucket:
    """So many at once, so many an interval, per key.

    Shapes: `limit` is how an error names it.
    Units: `period_seconds` is how long `refill` tokens take to come back.
    """

    clock: Callable[[], int]
    capacity: int
    refill: int
    period_seconds: int
    limit: str | None = None
    _levels: dict[Hashable, tuple[float, int]] = field(
        default_factory=dict[Hashable, tuple[float, int]]
    )
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def check(self, key: Hashable) -> None:
        """Refuse when nothing is left, take nothing.  Raises: RateLimitExceeded."""
        with self._lock:
            self._require(self._level(key), 1)

    def take(self, key: Hashable, cost: int = 1) -> None:
        """Take as many, or none.  Raises: RateLimitExceeded."""
        with self._lock:
            level = self._level(key)
            self._require(level, cost)
            self._set(key, level - cost)

    def spend(self, key: Hashable) -> None:
        """Take one, without asking."""
        with self._lock:
            self._set(key, max(0.0, self._level(key) - 1))

    def left(self, key: Hashable) -> int:
        """How many could be taken now."""
        with self._lock:
            return int(self._level(key))

    def _require(self, level: float, cost: int) -> None:
        if level < cost:
            wait = int((cost - level) * self.period_seconds / self.refill) + 1
            raise RateLimitExceeded(
                f"Too many requests; wait {wait} s.", retry_after_seconds=wait, limit=self.limit
            )

    def _level(self, key: Hashable) -> float:
        level, at_ns = self._levels.get(key, (float(self.capacity), self.clock()))
        elapsed_seconds = max(0, self.clock() - at_ns) / NANOSECONDS
        return min(self.capacity, level + elapsed_seconds * self.refill / self.period_seconds)

    def _set(self, key: Hashable, level: float) -> None:
        self._levels[key] = (level, self.clock())
        if len(self._levels) > MAX_KEYS:
            self._levels = {k: v for k, v in self._levels.items() if self._level(k) < self.capacity}


class RateLimits:
    """The limits of the OAuth endpoints."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.registration = Bucket(clock, 20, 60, 3_600)
        self.registration_all = Bucket(clock, 300, 300, 3_600)
        self.authorization = Bucket(clock, 30, 120, 3_600)
        self.fetch = Bucket(clock, 6, 6, 60)
        self.fetch_all = Bucket(clock, 60, 60, 60)
        self.token_failures = Bucket(clock, 20, 20, 600)
        self.introspection = Bucket(clock, 1_200, 1_200, 60)
        self.introspection_denials = Bucket(clock, 10, 10, 3_600)


@dataclass(frozen=True, slots=True)
class RateStatus:
    """What a holder has left: the `RateLimit-*` headers.  Units: cost units, seconds."""

    limit: int
    remaining: int
    reset_seconds: int


@dataclass(slots=True)
class Failures:
    """Instants of failures by key, the newest `kept` within `window_ns`."""

    clock: Callable[[], int]
    window_ns: int
    kept: int
    _at: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def recent(self, key: str) -> list[int]:
        """Failures of a key that still count, oldest first."""
        with self._lock:
            return self._recent(key)

    def add(self, key: str) -> None:
        """Count one more."""
        with self._lock:
            recent = [*self._recent(key), self.clock()][-self.kept :]
            if len(self._at) >= MAX_KEYS and key not in self._at:
                self._forget()
            self._at[key] = recent

    def forgive(self, key: str) -> None:
        """Take back the newest."""
        with self._lock:
            recent = self._recent(key)[:-1]
            self._at.pop(key, None)
            if recent:
                self._at[key] = recent

    def _recent(self, key: str) -> list[int]:
        oldest = self.clock() - self.window_ns
        return [at for at in self._at.get(key, ()) if at > oldest]

    def _forget(self) -> None:
        """Make room: what counts no longer goes, else the key that was there first."""
        first = next(iter(self._at))
        self._at = {k: recent for k in self._at if (recent := self._recent(k))}
        if len(self._at) >= MAX_KEYS:
            del self._at[first]


def refuse_until(
    until_ns: int,
    now_ns: int,
    limit: str = "sign_in",
    message: str = "There were too many wrong tries.",
) -> None:
    """Raises: RateLimitExceeded, with the seconds left to wait."""
    if now_ns < until_ns:
        seconds = -((now_ns - until_ns) // NANOSECONDS)
        raise RateLimitExceeded(message, retry_after_seconds=max(1, seconds), limit=limit)


@dataclass(slots=True)
class FailedBearers:
    """How often each address presented the same bearer that was refused; per minute.

    Only a refusal is ever limited, and only where its bearer was refused again and again: a host
    renews its token when it is told 401, and hosts share the addresses they call from.  `allowed` 0
    switches the limit off.
    Source: docs/contract/resource-server.md 16; docs/contract/authorization-server.md 17.
    """

    allowed: int
    clock: Callable[[], int]
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        """Keep as many as are allowed."""
        self._failures = Failures(self.clock, MINUTE_NS, max(1, self.allowed))

    def count(self, address: str, bearer: str) -> None:
        """One more refusal.  Raises: RateLimitExceeded, when there were too many."""
        if not self.allowed:
            return
        digest = blake2b(bearer.encode(), digest_size=16).hexdigest()
        key = f"{network_of(address)} {digest}"
        recent = self._failures.recent(key)
        if len(recent) >= self.allowed:
            message = "This token was refused too often; wait, then use a valid one."
            refuse_until(recent[0] + MINUTE_NS, self.clock(), "auth", message)
        self._failures.add(key)
