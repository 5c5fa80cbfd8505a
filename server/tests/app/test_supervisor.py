"""Workers that hang: they are ended and followed by others, and no stop waits for one for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from personal_server.app.signals import FORCED
from server.tests.app.http_server.served import until
from tests.processes import started, stop

ROOT = Path(__file__).resolve().parents[3]


def lives(folder: Path, seat: int) -> list[int]:
    """The processes that had a seat, oldest first."""
    found = sorted(folder.glob(f"{seat}.*"), key=lambda path: path.stat().st_mtime_ns)
    return [int(path.suffix[1:]) for path in found]


@pytest.fixture(params=["copies", "programs"])
def kind(request: pytest.FixtureRequest) -> str:
    """How workers begin, here and on macOS."""
    return request.param


def has_ended(pid: int) -> bool:
    """Whether it runs no more; nobody may have asked yet how it ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] == "Z"


@contextmanager
def supervised(folder: Path, kind: str) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "server.tests.app.http_server.hanging", str(folder), kind]
    process = started(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        until(lambda: lives(folder, 0) and lives(folder, 1))
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_worker_that_hangs_is_ended_and_followed_by_another(tmp_path: Path, kind: str) -> None:
    with supervised(tmp_path, kind) as process:
        until(lambda: len(lives(tmp_path, 1)) == 2)
        hung, _ = lives(tmp_path, 1)
        assert has_ended(hung)
        assert len(lives(tmp_path, 0)) == 1
        assert stop(process) == 0


def test_a_stop_waits_for_no_worker_for_ever(tmp_path: Path, kind: str) -> None:
    (tmp_path / "stubborn").write_text("0")
    with supervised(tmp_path, kind) as process:
        [stubborn] = lives(tmp_path, 0)
        assert stop(process) == FORCED
        assert has_ended(stubborn)


def test_who_was_stopped_itself_ends_nobody_for_that(tmp_path: Path, kind: str) -> None:
    with supervised(tmp_path, kind) as process:
        until(lambda: len(lives(tmp_path, 1)) == 2)
        every = [process.pid, lives(tmp_path, 0)[-1], lives(tmp_path, 1)[-1]]
        for pid in every:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.0)  # longer than a worker may be silent
        for pid in reversed(every):
            os.kill(pid, signal.SIGCONT)
        time.sleep(1.0)
        assert [len(lives(tmp_path, seat)) for seat in (0, 1)] == [1, 2]


def test_workers_stop_where_their_supervisor_was_killed(tmp_path: Path, kind: str) -> None:
    with supervised(tmp_path, kind) as process:
        until(lambda: len(lives(tmp_path, 1)) == 2)
        process.kill()
        for seat in (0, 1):
            until(partial(has_ended, lives(tmp_path, seat)[-1]))


def test_a_process_that_does_not_stop_is_ended_in_time(tmp_path: Path) -> None:
    program = (
        "import threading, time\n"
        "from personal_server.app.signals import end_in_time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "end_in_time(0.2)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=20, check=False)
    assert done.returncode == FORCED
