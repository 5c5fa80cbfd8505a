"""What each process counted, so that one of them can tell the figures of all.

Rule: a process tells what it counted every few seconds; the one that takes the seat of another
counts on from what that one told, so that nothing that was told is counted down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

import msgspec

from personal_server.app.connections import Connections
from personal_server.app.server import Server
from personal_server.app.shared_memory import SharedMemory

EVERY_SECONDS = 2.0
TOLD_BYTES = 128 * 1024
K = TypeVar("K", bound=Hashable)
Latency = tuple[list[int], float]
"""So many up to each bound (`web.traffic`), and the sum in seconds."""


class Tally(msgspec.Struct, array_like=True, frozen=True):
    """What was counted.

    Shapes: `requests` by (door, route, status), `latencies` by (door, route), `errors` by
        (door, code), `tool_calls` by (tool, outcome); under way are `waiting` and `working` by
        (surface, kind), and connections, of which there may be `most_connections`.
    """

    requests: dict[tuple[str, str, str], int] = {}
    latencies: dict[tuple[str, str], Latency] = {}
    errors: dict[tuple[str, str], int] = {}
    tool_calls: dict[tuple[str, str], int] = {}
    waiting: dict[tuple[str, str], int] = {}
    working: dict[tuple[str, str], int] = {}
    connections: int = 0
    most_connections: int = 0

    def __add__(self, other: Tally) -> Tally:
        latencies = dict(self.latencies)
        for key, (counts, seconds) in other.latencies.items():
            counted, before = latencies.get(key, ([0] * len(counts), 0.0))
            latencies[key] = (
                [a + b for a, b in zip(counted, counts, strict=True)],
                before + seconds,
            )
        return Tally(
            _sum(self.requests, other.requests),
            latencies,
            _sum(self.errors, other.errors),
            _sum(self.tool_calls, other.tool_calls),
            _sum(self.waiting, other.waiting),
            _sum(self.working, other.working),
            self.connections + other.connections,
            self.most_connections + other.most_connections,
        )

    @property
    def ended(self) -> Tally:
        """Without what was under way."""
        return Tally(self.requests, self.latencies, self.errors, self.tool_calls)


def _sum(first: Mapping[K, int], second: Mapping[K, int]) -> dict[K, int]:
    counter = Counter(first)
    counter.update(second)
    return dict(counter)


class Tallies:
    """What this process counted, and the others as they told it; without `memory` it is alone."""

    def __init__(
        self, memory: SharedMemory | None, server: Server, connections: Connections
    ) -> None:
        self._server = server
        self._connections = connections
        self._seat = None if memory is None else memory.seat
        self._told = None if memory is None else memory.values("tally", Tally, 64, TOLD_BYTES)
        before = None
        if self._told is not None and self._seat is not None:
            before = self._told.get(self._seat.number)
        self._before = Tally() if before is None else before.ended

    def tell(self) -> None:
        """Say what was counted until now."""
        if self._told is not None and self._seat is not None:
            self._told.put(self._seat.number, self._own())

    def total(self) -> Tally:
        """The tally of all processes together."""
        tally = self._own()
        if self._told is not None and self._seat is not None:
            peers = (n for n in range(self._seat.of) if n != self._seat.number)
            for report in map(self._told.get, peers):
                tally += report or Tally()
        return tally

    def _own(self) -> Tally:
        traffic, queues = self._server.traffic, self._server.surfaces.items()
        waiting_places = {
            (name, kind): place
            for name, surface in queues
            for kind, place in surface.queues.items()
        }
        latencies = dict(traffic.latencies).items()
        return self._before + Tally(
            dict(traffic.requests),
            {key: (list(latency.counts), latency.sum_seconds) for key, latency in latencies},
            dict(traffic.errors),
            dict(self._server.tool_calls),
            {key: place.waiting for key, place in waiting_places.items()},
            {key: place.working for key, place in waiting_places.items()},
            len(self._connections.open),
            self._connections.most,
        )
