import math
import threading

import anyio
import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.web import call_capacity
from personal_server.web.call_capacity import CallThreads, Capacity

pytestmark = pytest.mark.anyio


async def test_work_runs_in_another_thread() -> None:
    here = threading.get_ident()
    assert await CallThreads(Capacity()).run(threading.get_ident) != here


async def test_a_full_queue_refuses_at_once() -> None:
    with pytest.raises(StorageUnavailable):
        await CallThreads(Capacity(at_once=0, waiting=0)).run(threading.get_ident)


async def test_who_waits_too_long_is_refused_and_room_comes_back() -> None:
    pool = CallThreads(Capacity(at_once=1, wait_seconds=0.01))
    release, begun = threading.Event(), anyio.Event()

    async def occupy() -> None:
        begun.set()
        await pool.run(release.wait, 10)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(occupy)
        await begun.wait()
        await anyio.lowlevel.checkpoint()
        with pytest.raises(StorageUnavailable):
            await pool.run(threading.get_ident)
        release.set()
    assert await pool.run(threading.get_ident)


async def test_steps_of_a_stream_do_not_wait_for_calls() -> None:
    pool = CallThreads(Capacity(at_once=1, waiting=0))
    assert await pool.step(threading.get_ident)


@pytest.mark.parametrize("begun", [0.0, 0.0003, 0.0137, 0.0192, 0.0199])
async def test_when_a_wait_ends_does_not_tell_when_it_began(
    monkeypatch: pytest.MonkeyPatch, begun: float
) -> None:
    now = begun

    async def wait_as_event_loops_do(seconds: float) -> None:
        nonlocal now
        now += math.ceil(seconds * 1_000) / 1_000

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(anyio, "sleep", wait_as_event_loops_do)
    monkeypatch.setattr(call_capacity, "sleep", wait)
    monkeypatch.setattr(call_capacity, "perf_counter", lambda: now)
    await call_capacity.wait_until(0.02)
    assert now == pytest.approx(0.02)
