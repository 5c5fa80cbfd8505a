"""Processes that fetch come from one, have their own files only, and end with their block."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pdpp_kernel.system.confinement import MB
from pdpp_sources import started_process as processes
from pdpp_sources.process_starter import StartProcess
from pdpp_sources.started_process import StartedProcess, Starter, started_process

ASKED, MEMORY_BYTES = "sources.tests.asked_process", 200 * MB
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux about processes")


def said(process: StartedProcess, line: bytes) -> str:
    process.requests.write(line + b"\n")
    process.requests.flush()
    return process.replies.readline().decode().strip()


def names(process: StartedProcess) -> tuple[int, int]:
    own, parent = map(int, said(process, b"names").split())
    return own, parent


def test_each_comes_from_one_process_that_this_one_started() -> None:
    with started_process(ASKED, MEMORY_BYTES) as one, started_process(ASKED, MEMORY_BYTES) as two:
        assert names(one)[0] != names(two)[0]
        assert names(one)[1] == names(two)[1]
        parent = Path(f"/proc/{names(one)[1]}")
        assert f"PPid:\t{os.getpid()}\n" in (parent / "status").read_text()
        assert set((parent / "environ").read_bytes().split(b"\0")) == {
            b"PYTHONPATH=" + os.pathsep.join(filter(None, sys.path)).encode(),
            b"OMP_THREAD_LIMIT=1",
            b"",
        }


def test_one_has_the_files_that_were_handed_in_and_none_of_another() -> None:
    readable, writable = os.pipe()
    with os.fdopen(writable, "wb", 0) as out, started_process(ASKED, MEMORY_BYTES) as before:
        with (
            started_process(ASKED, MEMORY_BYTES, readable) as process,
            started_process(ASKED, MEMORY_BYTES),
        ):
            held = set(map(int, said(process, b"files").split()))
            assert len(held - {0, 1, 2}) == 4  # requests, replies, its own, and the list itself
            out.write(b"rain")
            assert said(process, b"read") == "rain"
        assert not Path(f"/proc/self/fd/{readable}").exists()  # closed here
        assert len(set(said(before, b"files").split()) - {"0", "1", "2"}) == 3


def test_one_is_ended_though_it_hears_nothing() -> None:
    with started_process(ASKED, MEMORY_BYTES) as process:
        own, _ = names(process)
        process.requests.write(b"wait\n")
        process.requests.flush()
        process.kill()
        process.kill()
        assert process.replies.read() == b""
    with started_process(ASKED, MEMORY_BYTES) as another:
        names(another)
        with pytest.raises(ProcessLookupError):
            os.kill(own, 0)


def test_another_parent_is_started_where_one_has_ended() -> None:
    with started_process(ASKED, MEMORY_BYTES) as process:
        _, parent = names(process)
        os.kill(parent, signal.SIGKILL)
    with started_process(ASKED, MEMORY_BYTES) as process:
        assert names(process)[1] != parent


def test_one_that_is_begun_early_has_loaded_what_it_was_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starter = Starter()
    monkeypatch.setattr(processes, "STARTS", starter)
    starter.begin((ASKED,))
    starter.begin(("sources.tests.silent_worker",))  # there is one, which goes on as it is
    with started_process(ASKED, MEMORY_BYTES) as process:
        command = Path(f"/proc/{names(process)[1]}/cmdline").read_bytes().split(b"\0")
    assert command[-2:] == [ASKED.encode(), b""]
    starter.leave()


def test_one_that_does_not_answer_in_time_is_ended() -> None:
    files, children = len(os.listdir("/proc/self/fd")), children_of_this()
    starter = Starter(answers_within_seconds=0.001)
    with pytest.raises(OSError, match="could be started"):
        starter.start(StartProcess(ASKED, 0.0, MEMORY_BYTES), ())
    assert children_of_this() == children
    assert len(os.listdir("/proc/self/fd")) == files


def children_of_this() -> set[str]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for task in tasks for child in task.read_text().split()}


STARTING = f"""
import os, sys
from pdpp_sources.started_process import started_process
with started_process("{ASKED}", {MEMORY_BYTES}) as process:
    process.requests.write(b"names\\n")
    process.requests.flush()
    print(process.replies.readline().decode(), flush=True)
    sys.stdin.read()
    os._exit(0)
"""


def test_all_end_with_the_process_that_started_them() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as starting:
        assert starting.stdout is not None
        ours = [os.pidfd_open(each) for each in map(int, starting.stdout.readline().split())]
        starting.communicate(timeout=60)
    for each in ours:
        assert select.select([each], [], [], 60)[0]  # readable once the process has ended
        os.close(each)


def test_one_that_asks_has_others_started_that_end_with_it() -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb") as told:
        with started_process("sources.tests.asking_process", MEMORY_BYTES, writable, asks=True):
            ours = list(map(int, told.readline().split()))
            own, parent, another, parent_of_another = ours
            assert parent == parent_of_another
            assert len({own, parent, another}) == 3
            watched = os.pidfd_open(another)
        assert select.select([watched], [], [], 60)[0]  # readable once the process has ended
        os.close(watched)


def test_how_one_ended_is_told_once_it_has() -> None:
    with started_process(ASKED, MEMORY_BYTES) as process:
        names(process)
        assert process.end() == process.end() == -signal.SIGKILL
    with started_process(ASKED, MEMORY_BYTES) as process:
        process.requests.close()
        assert process.replies.read() == b""
        assert process.end() == 0
