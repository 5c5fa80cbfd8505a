"""When listeners look: one bell that a write rings, and the pace of each listener.

Source: docs/contract/mcp-adapter.md 11.1.
"""

from typing import Protocol

import anyio
import anyio.to_thread
import msgspec

# What comes while a listener was just told is told together.
REST_SECONDS = 2.0
LONGEST_SECONDS = 60.0
# So long a thread outlives the server at most.
THREAD_SECONDS = 1.0


class Pace(Protocol):
    """Says when to look; one for each listener."""

    async def wait(self) -> bool:
        """Until something may have changed; whether documents may have, too."""
        ...


class Signal(Protocol):
    """Tells that something was written, by whichever process."""

    @property
    def count(self) -> int:
        """How often something was told."""
        ...

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        """Block this thread until the count is beyond `seen`, or so long; the count then."""
        ...


class Bell:
    """Wakes everybody who listens; one thread waits for the signal, while somebody does."""

    def __init__(self, signal: Signal, rest_seconds: float = REST_SECONDS) -> None:
        self._signal = signal
        self._rest_seconds = rest_seconds
        self._seen = 0
        self._waiting = 0
        self._rung, self._asked = anyio.Event(), anyio.Event()

    async def ring(self) -> None:
        """Serve, until cancelled."""
        one = anyio.CapacityLimiter(1)
        while True:
            if not self._waiting:
                self._asked = anyio.Event()
                await self._asked.wait()
            now = await anyio.to_thread.run_sync(
                self._signal.wait, self._seen, THREAD_SECONDS, limiter=one
            )
            if now != self._seen:
                self._seen = now
                rung, self._rung = self._rung, anyio.Event()
                rung.set()

    async def after(self, seen: int) -> int:
        """Until the count is beyond `seen`, or a minute: an access may end by the clock alone."""
        self._waiting += 1
        self._asked.set()
        try:
            with anyio.move_on_after(LONGEST_SECONDS):
                while self._seen <= seen:
                    await self._rung.wait()
        finally:
            self._waiting -= 1
        return max(self._seen, seen)

    async def pace(self) -> Pace:
        """A pace that misses nothing written from now on."""
        seen = await anyio.to_thread.run_sync(lambda: self._signal.count)
        return BellPace(self, seen, self._rest_seconds)


class BellPace(msgspec.Struct):
    """When one listener looks: woken by the bell, but not again before its rest."""

    bell: Bell
    seen: int
    rest_seconds: float
    _woken_at: float = -REST_SECONDS

    async def wait(self) -> bool:
        """As the protocol has it."""
        await anyio.sleep_until(self._woken_at + self.rest_seconds)
        self.seen = await self.bell.after(self.seen)
        self._woken_at = anyio.current_time()
        return True
