"""Background work: what the server does by itself, supervised.

Rule: what fails is said in one line, shown in health and done again after a pause that grows; it
takes nothing else down, neither another task nor a surface.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.failures import places_of
from personal_server.web.health import Fault

FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class BackgroundTask:
    """Work that comes back every so many seconds, and how it went the last times.

    Shapes: `work` is called in a worker thread, or awaited if it is a coroutine function, `at_stop`
        once more when the server stops; `stop` has work that is under way end soon; `failures`
        counts those since it last succeeded (at `succeeded_at_ns`, 0 before), `code` is the last
        one's.
    """

    name: str
    every_seconds: float
    work: Callable[[], object]
    at_stop: bool = False
    stop: Callable[[], object] | None = None
    failures: int = field(default=0, init=False)
    code: str = field(default="", init=False)
    failing_since_ns: int = field(default=0, init=False)
    succeeded_at_ns: int = field(default=0, init=False)

    @property
    def pause_seconds(self) -> float:
        """How long until it is done again: after failures doubling, from seconds to minutes."""
        if not self.failures:
            return self.every_seconds
        longest = max(self.every_seconds, LONGEST_PAUSE_SECONDS)
        return min(FIRST_PAUSE_SECONDS * 2.0 ** min(self.failures - 1, 20), longest)


class BackgroundTasks:
    """The supervisor.  Whoever has work to do registers it before the server starts."""

    def __init__(
        self,
        clock: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self.tasks: list[BackgroundTask] = []

    def register(
        self,
        name: str,
        every_seconds: float,
        work: Callable[[], object],
        *,
        at_stop: bool = False,
        stop: Callable[[], object] | None = None,
    ) -> None:
        """Do this work at the start and then again and again, and once more `at_stop`.

        `name` is what health and the log call it.  Work that takes longer than a stop should wait
        for it says how to `stop` it.
        """
        self.tasks.append(BackgroundTask(name, every_seconds, work, at_stop, stop))

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """Do everything that is registered, until the block ends."""
        async with anyio.create_task_group() as group:
            for task in self.tasks:
                group.start_soon(self._keep_doing, task)
            try:
                yield
            finally:
                for task in self.tasks:
                    if task.stop is not None:
                        task.stop()
            group.cancel_scope.cancel()
        for task in self.tasks:
            if task.at_stop:
                await self._do(task)

    def faults(self) -> Iterator[Fault]:
        """What failed and has not succeeded since."""
        for task in self.tasks:
            if task.failures:
                yield Fault(
                    f"task.{task.name}",
                    task.code,
                    task.failing_since_ns,
                    "The server tries again automatically; the server's log names the cause.",
                )

    async def _keep_doing(self, task: BackgroundTask) -> None:
        while True:
            await self._do(task)
            await self._sleep(task.pause_seconds)

    async def _do(self, task: BackgroundTask) -> None:
        try:
            if inspect.iscoroutinefunction(task.work):
                await task.work()
            else:
                await anyio.to_thread.run_sync(task.work)
        except Exception as error:  # noqa: BLE001 (the boundary of background work)
            code = error.code if isinstance(error, PersonalServerError) else "internal_error"
            if not task.failures:
                task.failing_since_ns = self._clock()
            task.failures += 1
            task.code = code
            _log.error(
                "background task %s failed: %s (%s at %s), again in %d s",
                task.name,
                code,
                type(error).__name__,
                places_of(error),
                task.pause_seconds,
            )
        else:
            if task.failures:
                _log.warning("background task %s works again", task.name)
            task.failures, task.succeeded_at_ns = 0, self._clock()
