"""Limits in memory: one token bucket, one count of failures.

Source: docs/contract/resource-server.md 16; docs/contract/authorization-server.md 17.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import IPv4Address, IPv6Network, ip_address

from pdpp_kernel.errors import RateLimitExceeded
from pdpp_kernel.texts import message
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.keyed_values import KeyedValues, OwnSpace, OwnValues, ValueSpace

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


Level = tuple[float, int]
"""How many were left at an instant (UTC ns)."""
LEVEL_BYTES = 20
INSTANT_BYTES = 9


def levels_in(space: ValueSpace, name: str) -> KeyedValues[Level]:
    """The levels of a bucket."""
    return space.values(name, tuple[float, int], MAX_KEYS, LEVEL_BYTES)


@dataclass(slots=True)
class Bucket:
    """So many at once, so many an interval, per key.

    Shapes: `limit` is how an error names it; `levels` (how many were left, and when) of a key that
        took nothing for longest give way.
    Units: `period_seconds` is how long `refill` tokens take to come back.
    """

    clock: Callable[[], int]
    capacity: int
    refill: int
    period_seconds: int
    limit: str | None = None
    levels: KeyedValues[Level] = field(default_factory=OwnValues["Level"], compare=False)

    def check(self, key: Hashable) -> None:
        """Refuse when nothing is left, take nothing.  Raises: RateLimitExceeded."""
        self._require(self._level(key), 1)

    def take(self, key: Hashable, cost: int = 1) -> None:
        """Take as many, or none.  Raises: RateLimitExceeded."""
        with self.levels.lock:
            level = self._level(key)
            self._require(level, cost)
            self._set(key, level - cost)

    def spend(self, key: Hashable) -> None:
        """Take one, without asking."""
        with self.levels.lock:
            self._set(key, max(0.0, self._level(key) - 1))

    def left(self, key: Hashable) -> int:
        """How many could be taken now."""
        return int(self._level(key))

    def _require(self, level: float, cost: int) -> None:
        if level < cost:
            wait = int((cost - level) * self.period_seconds / self.refill) + 1
            raise RateLimitExceeded(
                message("Too many requests; wait %(seconds)s s.", seconds=str(wait)),
                retry_after_seconds=wait,
                limit=self.limit,
            )

    def _level(self, key: Hashable) -> float:
        level, at_ns = self.levels.get(key) or (float(self.capacity), self.clock())
        elapsed_seconds = max(0, self.clock() - at_ns) / NANOSECONDS
        return min(self.capacity, level + elapsed_seconds * self.refill / self.period_seconds)

    def _set(self, key: Hashable, level: float) -> None:
        self.levels.put(key, (level, self.clock()))


class RateLimits:
    """The limits of the OAuth endpoints."""

    def __init__(self, clock: Callable[[], int], space: ValueSpace | None = None) -> None:
        kept = space or OwnSpace()

        def bucket(name: str, capacity: int, refill: int, period_seconds: int) -> Bucket:
            levels = levels_in(kept, f"oauth.{name}")
            return Bucket(clock, capacity, refill, period_seconds, levels=levels)

        self.registration = bucket("registration", 20, 60, 3_600)
        self.registration_all = bucket("registration_all", 300, 300, 3_600)
        self.authorization = bucket("authorization", 30, 120, 3_600)
        self.fetch = bucket("fetch", 6, 6, 60)
        self.fetch_all = bucket("fetch_all", 60, 60, 60)
        self.token_failures = bucket("token_failures", 20, 20, 600)
        self.introspection = bucket("introspection", 1_200, 1_200, 60)
        self.introspection_denials = bucket("introspection_denials", 10, 10, 3_600)


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
    instants: KeyedValues[list[int]] = field(default_factory=OwnValues["list[int]"], compare=False)

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held by whoever counts by what was counted."""
        return self.instants.lock

    def recent(self, key: str) -> list[int]:
        """Failures of a key that still count, oldest first."""
        oldest = self.clock() - self.window_ns
        return [at for at in self.instants.get(key) or () if at > oldest]

    def add(self, key: str) -> None:
        """Count one more."""
        with self.lock:
            self.instants.put(key, [*self.recent(key), self.clock()][-self.kept :])

    def forgive(self, key: str) -> None:
        """Take back the newest."""
        with self.lock:
            recent = self.recent(key)[:-1]
            if recent:
                self.instants.put(key, recent)
            else:
                self.instants.remove(key)


def failures_in(
    space: ValueSpace, name: str, clock: Callable[[], int], window_ns: int, kept: int
) -> Failures:
    """Failures that lie there."""
    size_bytes = 3 + kept * INSTANT_BYTES
    instants = space.values(name, list[int], MAX_KEYS, size_bytes)
    return Failures(clock, window_ns, kept, instants)


def refuse_until(
    until_ns: int,
    now_ns: int,
    limit: str = "sign_in",
    sentence: str = message("There were too many wrong tries."),
) -> None:
    """Raises: RateLimitExceeded, with the seconds left to wait."""
    if now_ns < until_ns:
        seconds = -((now_ns - until_ns) // NANOSECONDS)
        raise RateLimitExceeded(sentence, retry_after_seconds=max(1, seconds), limit=limit)


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
    space: ValueSpace = field(default_factory=OwnSpace, compare=False)
    _failures: Failures = field(init=False)

    def __post_init__(self) -> None:
        """Keep as many as are allowed."""
        kept = max(1, self.allowed)
        self._failures = failures_in(self.space, "bearers", self.clock, MINUTE_NS, kept)

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
