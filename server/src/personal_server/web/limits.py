"""Limits in memory: one token bucket for each limit.

Source: docs/contract/resource-server.md 16; docs/contract/authorization-server.md 17.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from ipaddress import IPv4Address, IPv6Network, ip_address

import msgspec

from pdpp_kernel.errors import RateLimitExceeded
from pdpp_kernel.texts import message
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.keyed_values import (
    KeyedValues,
    ValueSpace,
)
from personal_server.domain.own_values import (
    OwnSpace,
    OwnValues,
)

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


class Bucket(msgspec.Struct, eq=False):
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
    levels: KeyedValues[Level] = msgspec.field(default_factory=OwnValues["Level"])

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
                message("Too many requests. Wait %(seconds)s s.", seconds=str(wait)),
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


class RateStatus(msgspec.Struct, frozen=True):
    """What a holder has left: the `RateLimit-*` headers.  Units: cost units, seconds."""

    limit: int
    remaining: int
    reset_seconds: int
