"""What the processes of one server tell one another."""

from __future__ import annotations

from dataclasses import dataclass

from pdpp_kernel.values import NANOSECONDS
from personal_server.app.peers import WORKER_SILENT, Peers
from personal_server.app.shared_memory import Seat, SharedMemory
from personal_server.web.health import Health, PeerHealth

STARTED_NS = 1_700_000_000 * NANOSECONDS


@dataclass
class Clock:
    """Seconds since a start."""

    seconds: float = 5.0

    def monotonic(self) -> int:
        return int(self.seconds * NANOSECONDS)

    def now(self) -> int:
        return STARTED_NS + self.monotonic()


def two(clock: Clock) -> tuple[Peers, Peers, Health]:
    """Two processes, and the health of the first."""
    memory, health = SharedMemory.make(2), Health()
    second = SharedMemory(memory.descriptor, Seat(1, 2))
    first = SharedMemory(memory.descriptor, Seat(0, 2))
    return (
        Peers(first, health, clock.monotonic, clock.now),
        Peers(second, Health(), clock.monotonic, clock.now),
        health,
    )


def other(peers: Peers) -> PeerHealth:
    _, found = peers.others()
    return found


def test_what_a_process_told_has_an_age() -> None:
    clock = Clock()
    first, second, _ = two(clock)
    second.tell()
    clock.seconds += 4.5
    assert (other(first).age_seconds, other(first).faults) == (4.5, ())


def test_a_process_that_tells_nothing_any_more_is_a_fault_until_it_tells_again() -> None:
    clock = Clock()
    first, second, health = two(clock)
    second.tell()
    clock.seconds += 12
    [fault] = health.faults()
    assert (fault.part, fault.code, fault.serving) == ("worker.1", WORKER_SILENT, True)
    assert fault.since_ns == STARTED_NS + 5 * NANOSECONDS
    assert b'"beat_seconds_ago":12.0' in bytes(health.response("/healthz").body)
    second.tell()
    assert other(first).faults == ()
