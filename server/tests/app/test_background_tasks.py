"""Background work: what fails is told, tried again later, and takes nothing else down."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.app.background_tasks import BackgroundTasks

pytestmark = pytest.mark.anyio

NOW_NS = 1_800_000_000 * 10**9


@dataclass
class Work:
    """Fails as often as it is told, then succeeds."""

    failures: int
    error: Callable[[], Exception] = lambda: StorageUnavailable("The note says: my secret.")
    done: int = 0

    def __call__(self) -> None:
        self.done += 1
        if self.done <= self.failures:
            raise self.error()


@dataclass
class Naps:
    """Sleeps in no time, a number of times; then for ever."""

    allowed: int
    slept: list[float] = field(default_factory=list[float])
    over: anyio.Event = field(default_factory=anyio.Event)

    async def __call__(self, seconds: float) -> None:
        if len(self.slept) == self.allowed:
            self.over.set()
            await anyio.sleep_forever()
        self.slept.append(seconds)


async def ran(work: Work, times: int) -> tuple[BackgroundTasks, Naps]:
    naps = Naps(times)
    background = BackgroundTasks(lambda: NOW_NS, naps)
    background.register("testing", 60, work)
    async with background.running():
        await naps.over.wait()
    return background, naps


async def test_work_is_repeated_after_its_pause() -> None:
    background, naps = await ran(work := Work(0), 3)
    assert work.done == 4
    assert naps.slept == [60, 60, 60]
    assert list(background.faults()) == []


async def test_what_fails_is_tried_again_after_a_pause_that_grows() -> None:
    background, naps = await ran(Work(99), 9)
    assert naps.slept == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    (fault,) = background.faults()
    assert (fault.part, fault.code, fault.since_ns) == (
        "task.testing",
        "storage_unavailable",
        NOW_NS,
    )
    assert fault.serving


async def test_what_works_again_is_no_fault_any_more() -> None:
    background, naps = await ran(Work(2), 3)
    assert naps.slept == [5, 10, 60]
    assert list(background.faults()) == []


async def test_a_failure_is_one_line_without_a_stored_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    await ran(Work(1, lambda: ValueError("my secret")), 1)
    first, second = (record.getMessage() for record in caplog.records)
    assert "testing" in first
    assert "internal_error" in first
    assert "secret" not in first + second
    assert "\n" not in first


async def test_a_task_that_fails_leaves_the_others_alone() -> None:
    background = BackgroundTasks(lambda: NOW_NS, Naps(sys.maxsize))
    background.register("failing", 1, bad := Work(sys.maxsize))
    background.register("working", 1, good := Work(0))
    with anyio.fail_after(120):
        async with background.running():
            # whichever thread gets the processor less often
            while min(bad.done, good.done) < 2:
                await anyio.lowlevel.checkpoint()


async def test_what_takes_long_is_told_that_the_server_stops() -> None:
    told = threading.Event()
    background = BackgroundTasks(lambda: NOW_NS)
    background.register("long", 60, told.wait, stop=told.set)
    with anyio.fail_after(20):
        async with background.running():
            await anyio.lowlevel.checkpoint()
    assert told.is_set()


async def test_what_is_due_at_the_stop_is_done_once_more() -> None:
    naps = Naps(0)
    background = BackgroundTasks(lambda: NOW_NS, naps)
    background.register("last", 60, last := Work(0), at_stop=True)
    background.register("never mind", 60, other := Work(0))
    async with background.running():
        await naps.over.wait()
    assert (last.done, other.done) == (2, 1)
