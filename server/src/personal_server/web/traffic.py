"""Traffic: how many requests there were, how they ended, and how long they took.

Rule: one place measures, whichever surface answers; a request is named by the pattern of its route
and a refusal by its code, so that nothing of what was asked or shown is ever in it.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send

NETWORK, IN_PROCESS = "network", "in_process"
"""The doors: over a connection; by the hosted adapter, whose calls of `/v1` never leave us."""
NO_ROUTE, UNANSWERED = "none", "none"
BOUNDS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Latencies(msgspec.Struct):
    """How long requests took: so many up to each bound, the last for those beyond all."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_SECONDS) + 1))
    sum_seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.sum_seconds += seconds


class Traffic:
    """What was measured since the start.

    Shapes: `requests` by (door, route, status), `latencies` by (door, route), `errors` by
        (door, code).
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.latencies: dict[tuple[str, str], Latencies] = {}
        self.errors: Counter[tuple[str, str]] = Counter()

    def measured(self, door: str, app: ASGIApp) -> ASGIApp:
        """The same application; what comes through it is measured.

        It says in `scope["state"]` which `route` answered, and with which `error`.
        """

        async def measuring(scope: Scope, receive: Receive, send: Send) -> None:
            begun, status = self._monotonic(), UNANSWERED

            async def noting(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = str(message["status"])
                await send(message)

            try:
                await app(scope, receive, noting)
            finally:
                self._add(door, scope.get("state", {}), status, self._monotonic() - begun)

        return measuring

    def _add(self, door: str, members: dict[str, str], status: str, seconds: float) -> None:
        route = members.get("route", NO_ROUTE)
        self.requests[door, route, status] += 1
        self.latencies.setdefault((door, route), Latencies()).add(seconds)
        if "error" in members:
            self.errors[door, members["error"]] += 1
