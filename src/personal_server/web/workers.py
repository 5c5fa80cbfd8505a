"""Workers: synchronous work runs in a bounded number of threads, behind a bounded queue.

Rule: beyond its capacity the server refuses at once or after a short wait; it never piles up work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, TypeVarTuple, Unpack

import anyio.to_thread
from anyio import CapacityLimiter

from personal_server.errors import StorageUnavailable

T = TypeVar("T")
A = TypeVarTuple("A")


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much is worked on at once, how many calls may wait, and for how long."""

    threads: int = 8
    waiting: int = 256
    wait_seconds: float = 5.0


class Workers:
    """The threads of one server, made on the loop that first uses them."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._waiting = 0
        self._free: anyio.Semaphore | None = None
        self._limiter: CapacityLimiter | None = None
        self._streams: CapacityLimiter | None = None

    @property
    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return self._waiting

    @property
    def working(self) -> int:
        """How many threads work on a call."""
        return 0 if self._free is None else self._capacity.threads - self._free.value

    @property
    def are_busy(self) -> bool:
        """Whether further work would have to wait."""
        return self._free is not None and self._free.value == 0

    async def run(self, work: Callable[[Unpack[A]], T], *args: *A) -> T:
        """The result of the work.

        Raises: StorageUnavailable when too many wait, or one waits too long.
        """
        if self._free is None or self._limiter is None:
            self._free = anyio.Semaphore(self._capacity.threads)
            self._limiter = CapacityLimiter(self._capacity.threads)
        await self._enter(self._free)
        try:
            return await anyio.to_thread.run_sync(work, *args, limiter=self._limiter)
        finally:
            self._free.release()

    async def step(self, work: Callable[[Unpack[A]], T], *args: *A) -> T:
        """One step of a stream that has begun: it waits for other streams only, never refused."""
        if self._streams is None:
            self._streams = CapacityLimiter(self._capacity.threads)
        return await anyio.to_thread.run_sync(work, *args, limiter=self._streams)

    async def _enter(self, free: anyio.Semaphore) -> None:
        if self._waiting >= self._capacity.waiting:
            raise _busy()
        self._waiting += 1
        try:
            with anyio.fail_after(self._capacity.wait_seconds):
                await free.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1


def _busy() -> StorageUnavailable:
    return StorageUnavailable("The server is busy; try again.", retry_after_seconds=1)
