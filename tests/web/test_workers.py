import threading

import anyio
import pytest

from personal_server.errors import StorageUnavailable
from personal_server.web.workers import Capacity, Workers

pytestmark = pytest.mark.anyio


async def test_work_runs_in_another_thread() -> None:
    here = threading.get_ident()
    assert await Workers(Capacity()).run(threading.get_ident) != here


async def test_a_full_queue_refuses_at_once() -> None:
    with pytest.raises(StorageUnavailable):
        await Workers(Capacity(at_once=0, waiting=0)).run(threading.get_ident)


async def test_who_waits_too_long_is_refused_and_room_comes_back() -> None:
    workers = Workers(Capacity(at_once=1, wait_seconds=0.01))
    release, begun = threading.Event(), anyio.Event()

    async def occupy() -> None:
        begun.set()
        await workers.run(release.wait, 10)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(occupy)
        await begun.wait()
        await anyio.lowlevel.checkpoint()
        with pytest.raises(StorageUnavailable):
            await workers.run(threading.get_ident)
        release.set()
    assert await workers.run(threading.get_ident)


async def test_steps_of_a_stream_do_not_wait_for_calls() -> None:
    workers = Workers(Capacity(at_once=1, waiting=0))
    assert await workers.step(threading.get_ident)
