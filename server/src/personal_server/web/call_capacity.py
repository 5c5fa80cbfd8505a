"""Places for calls, and the threads that work on them; so many, behind a bounded queue.

Rule: beyond its capacity the server refuses at once or after a short wait; it never piles up work.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from time import perf_counter, sleep
from typing import TypeVar, TypeVarTuple, Unpack

import anyio.to_thread
import msgspec
from anyio import CapacityLimiter

from pdpp_kernel.errors import StorageUnavailable

T = TypeVar("T")
A = TypeVarTuple("A")
# An event loop's wait may end a millisecond late, and a thread has to be handed the rest.
_LAST_SECONDS = 0.002


class Capacity(msgspec.Struct, frozen=True):
    """How many calls are worked on at once, how many may wait, and for how long."""

    at_once: int = 8
    waiting: int = 256
    wait_seconds: float = 5.0


class Places:
    """Places for calls, taken in the order in which they came."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._free = anyio.Semaphore(capacity.at_once)
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many calls wait for a place."""
        return self._waiting

    @property
    def working(self) -> int:
        """How many have one."""
        return self._capacity.at_once - self._free.value

    @asynccontextmanager
    async def one(self) -> AsyncGenerator[None]:
        """A place for as long as the block lasts.

        Raises: StorageUnavailable, at once when too many wait, or when this one waited too long.
        """
        await self._enter()
        try:
            yield
        finally:
            self._free.release()

    async def _enter(self) -> None:
        with suppress(anyio.WouldBlock):
            # never before one that waits: a place that is left goes to the first of them
            self._free.acquire_nowait()
            return
        if self._waiting >= self._capacity.waiting:
            raise _busy()
        self._waiting += 1
        try:
            with anyio.fail_after(self._capacity.wait_seconds):
                await self._free.acquire()
        except TimeoutError:
            raise _busy() from None
        finally:
            self._waiting -= 1


async def wait_until(at: float) -> None:
    """Wait for an instant by `perf_counter`, the last of it in a thread.

    An event loop waits whole milliseconds from now on: the moment at which that ends tells when it
    began, within a millisecond.
    """
    await anyio.sleep(max(0.0, at - _LAST_SECONDS - perf_counter()))
    await anyio.to_thread.run_sync(_sleep_until, at)


def _sleep_until(at: float) -> None:
    while (left := at - perf_counter()) > 0:
        sleep(left)


def _busy() -> StorageUnavailable:
    return StorageUnavailable("The server is busy. Try again.", retry_after_seconds=1)


class CallThreads:
    """The threads of one server; what limits them is made on the loop that first uses it."""

    def __init__(self, capacity: Capacity) -> None:
        self._threads = capacity.at_once
        self.places = Places(capacity)
        self._limiter: CapacityLimiter | None = None
        self._streams: CapacityLimiter | None = None

    @property
    def are_busy(self) -> bool:
        """Whether further work would have to wait."""
        return self.places.working == self._threads

    async def run(self, work: Callable[[Unpack[A]], T], *args: *A) -> T:
        """The result of the work.  Raises: StorageUnavailable as `Places`."""
        async with self.places.one():
            if self._limiter is None:
                self._limiter = CapacityLimiter(self._threads)
            return await anyio.to_thread.run_sync(work, *args, limiter=self._limiter)

    async def step(self, work: Callable[[Unpack[A]], T], *args: *A) -> T:
        """One step of a stream that has begun: it waits for other streams only, never refused."""
        if self._streams is None:
            self._streams = CapacityLimiter(self._threads)
        return await anyio.to_thread.run_sync(work, *args, limiter=self._streams)
