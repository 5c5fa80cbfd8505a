from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from personal_server.upkeep.scratch import sweep_scratch
from server.tests.app.http_server.served import until
from server.tests.upkeep.machine import Machine


def dead_process() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        return process.pid


def test_what_dead_processes_left_goes_and_what_living_ones_write_stays(tmp_path: Path) -> None:
    dead, living = dead_process(), os.getpid()
    for name in (f".config-{dead}.toml", f".config-{living}.toml", "config.toml", ".ledger-new"):
        (tmp_path / name).write_text("")
    (tmp_path / ".ledger-old").write_text("")
    os.utime(tmp_path / ".ledger-old", (0, 0))
    for process in (dead, living):
        (tmp_path / f".backup-{process}-x").mkdir()
        (tmp_path / f".backup-{process}-x" / "database.sqlite3").write_text("")
    assert sweep_scratch(tmp_path, time.time_ns()) == 3
    kept = {".config-{}.toml", ".backup-{}-x", "config.toml", ".ledger-new"}
    assert {path.name for path in tmp_path.iterdir()} == {name.format(living) for name in kept}
    assert sweep_scratch(tmp_path, time.time_ns()) == 0


def test_a_server_that_starts_sweeps_what_a_crash_left(tmp_path: Path) -> None:
    with Machine(tmp_path).running() as machine:
        machine.start()
        machine.stop()
        blobs = machine.data / "blobs"
        blobs.mkdir(exist_ok=True)
        left = [machine.data / f".config-{dead_process()}.toml", blobs / "incoming-old"]
        fresh = blobs / "incoming-new"
        for path in (*left, fresh):
            path.write_text("")
        os.utime(left[1], (0, 0))
        machine.start()
        process = machine.process
        assert process is not None
        until(lambda: process.poll() is not None or not any(path.exists() for path in left))
        assert process.poll() is None
        assert fresh.exists()
