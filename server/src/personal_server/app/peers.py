"""What the processes of one server tell one another, so that each can answer for all.

Rule: a process tells its own health every few seconds; of one that ended, whoever supervises says
so until another has its place.  What one told last has an age: one that tells nothing any more
hangs, and every other one says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from pdpp_kernel.system.process_resources import memory_bytes
from pdpp_kernel.values import NANOSECONDS
from personal_server.app.shared_memory import SharedMemory, SharedValues
from personal_server.web.health import Fault, Health, PeerHealth

EVERY_SECONDS = 2.0
TOLD_BYTES = 64 * 1024
WORKER_ENDED = "worker_ended"
WORKER_SILENT = "worker_silent"
SILENT_SECONDS = 10.0


class Told(msgspec.Struct, frozen=True):
    """What one process says of itself.

    Units: `told_at_ns` on the monotonic clock, which all processes of a machine share; 0 of one
        that ended.
    """

    faults: list[Fault]
    progress: dict[str, int]
    memory_bytes: int
    told_at_ns: int = 0


def told_in(memory: SharedMemory) -> SharedValues[Told]:
    """By the number of the process."""
    return memory.values("told", Told, 64, TOLD_BYTES)


def told_of_ended(number: int, since_ns: int) -> Told:
    """What is said in the place of a process that ended."""
    step = "The server restarts this process automatically; the server's log says how it ended."
    return Told([Fault(f"worker.{number}", WORKER_ENDED, since_ns, step)], {}, 0)


class Peers:
    """The others, as this process sees them, and what it tells them."""

    def __init__(
        self,
        memory: SharedMemory,
        health: Health,
        monotonic: Callable[[], int] = time.monotonic_ns,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._monotonic = monotonic
        self._clock = clock
        self._seat = memory.seat
        self._told = told_in(memory)
        self._health = health
        health.register_peers(self.others)

    def tell(self) -> None:
        """Say how it is now."""
        faults, progress = self._health.own_faults(), self._health.own_progress()
        own = Told(faults, progress, memory_bytes(), self._monotonic())
        self._told.put(self._seat.number, own)

    def others(self) -> Iterator[PeerHealth]:
        """The health of all, by number: of this one as it is, of others as they told it."""
        for number in range(self._seat.of):
            if number == self._seat.number:
                yield PeerHealth((), {}, memory_bytes())
                continue
            report = self._told.get(number)
            if report is not None:
                yield self._as_told(number, report)

    def _as_told(self, number: int, report: Told) -> PeerHealth:
        if not report.told_at_ns:
            return PeerHealth(tuple(report.faults), report.progress, report.memory_bytes)
        age_ns = max(0, self._monotonic() - report.told_at_ns)
        age_seconds = age_ns / NANOSECONDS
        faults = list(report.faults)
        if age_seconds > SILENT_SECONDS:
            step = (
                "The server ends this process after 30 s and starts another; if that comes again,"
                " look at the server's log."
            )
            since_ns = self._clock() - age_ns
            faults.append(Fault(f"worker.{number}", WORKER_SILENT, since_ns, step))
        return PeerHealth(tuple(faults), report.progress, report.memory_bytes, age_seconds)
