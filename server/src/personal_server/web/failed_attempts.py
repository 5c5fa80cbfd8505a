"""Failures: how often something failed lately, and when that is too often."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from hashlib import blake2b

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
from personal_server.web.limits import INSTANT_BYTES, MAX_KEYS, MINUTE_NS, network_of


class Failures(msgspec.Struct, eq=False):
    """Instants of failures by key, the newest `kept` within `window_ns`."""

    clock: Callable[[], int]
    window_ns: int
    kept: int
    instants: KeyedValues[list[int]] = msgspec.field(default_factory=OwnValues["list[int]"])

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
    sentence: str = message("Too many wrong attempts. Wait before you try again."),
) -> None:
    """Raises: RateLimitExceeded, with the seconds left to wait."""
    if now_ns < until_ns:
        seconds = -((now_ns - until_ns) // NANOSECONDS)
        raise RateLimitExceeded(sentence, retry_after_seconds=max(1, seconds), limit=limit)


@dataclass(slots=True)
class FailedBearers:
    """How often each network presented the same bearer that was refused with 401; per minute.

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
            message = "This token was refused too often. Wait, then use a valid token."
            refuse_until(recent[0] + MINUTE_NS, self.clock(), "auth", message)
        self._failures.add(key)
