"""Bearers that were refused, counted by address.

Rule: only a refusal is ever limited.  A good token is never limited by its address, since hosts
share the addresses they call from.  Source: RS contract 16; AS contract 17.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from personal_server.domain.values import NANOSECONDS
from personal_server.errors import RateLimitExceeded

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
