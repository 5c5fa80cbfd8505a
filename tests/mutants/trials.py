"""Run tests again and again in forks of one process that has imported what others wrote.

`python -m tests.mutants.trials`, started in a copy of the tree, reads one JSON object a line:
`{"tests": [paths], "left_out": [node ids], "seconds": 60}`, and answers one a line:
`{"outcome": "passed" | "failed" | "timeout" | "error", "seconds": 1.5, "by": "node id",
"slow": [node ids], "modules": {path: seconds}}`.  An error is a trial that came to no verdict:
pytest broke, or the fork ended without an answer.
Nothing of the program is imported before the fork, so that each trial sees the module of its turn.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import select
import signal
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

SLOW_SECONDS = 15.0
_PR_SET_CHILD_SUBREAPER = 36
_IMPORTED = (
    "anyio._backends._asyncio",
    "apsw",
    "argon2",
    "hypothesis",
    "hypothesis.strategies",
    "joserfc.jwt",
    "jsonschema_rs",
    "msgspec",
    "numpy",
    "orjson",
    "psycopg",
    "starlette.applications",
)


class Watcher:
    """A plugin: which test failed first, which took long, and how long each module took."""

    def __init__(self) -> None:
        self.failed = ""
        self.slow: list[str] = []
        self.modules: defaultdict[str, float] = defaultdict(float)
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration
        self.modules[report.nodeid.partition("::")[0]] += report.duration
        if report.failed:
            self.failed = self.failed or report.nodeid
        if report.when == "teardown" and self._seconds[report.nodeid] > SLOW_SECONDS:
            self.slow.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


def run(order: dict[str, Any], answer: int) -> None:
    """What the fork does: run the tests, write the answer, end."""
    os.setsid()
    log = os.open("trial.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    watcher = Watcher()
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    # imported before the fork; PostgreSQL answers as the file does, and takes seconds to start
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-k", "not postgres"]
    options += ["--basetemp=trial.folder"]
    options += [f"--deselect={node}" for node in order["left_out"]]
    code = pytest.main([*options, *order["tests"]], plugins=[watcher])
    nothing = code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    outcome = "passed" if nothing else "failed" if watcher.failed else "error"
    by = "" if nothing else watcher.failed or pytest.ExitCode(code).name
    told = {"outcome": outcome, "by": by, "slow": watcher.slow, "modules": watcher.modules}
    os.write(answer, json.dumps(told).encode())
    os._exit(0)


def tried(order: dict[str, Any]) -> dict[str, Any]:
    """Fork, wait no longer than the order says, and leave no process."""
    began = time.monotonic()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run(order, writing)
        finally:
            os._exit(1)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], order["seconds"])
    written = os.read(reading, 1 << 16) if ready else b""
    os.close(reading)
    end_descendants()
    answer: dict[str, Any] = {"outcome": "timeout", "by": "", "slow": [], "modules": {}}
    if ready:
        answer |= {"outcome": "error", "by": "ended without an answer"}
    if written:
        answer = json.loads(written)
    return {**answer, "seconds": time.monotonic() - began}


def end_descendants() -> None:
    """Kill what descends from this process, until there is nothing."""
    while children := _children():
        for child in children:
            os.kill(child, signal.SIGKILL)
        os.waitpid(-1, 0)


def _children() -> list[int]:
    own = os.getpid()
    listed = Path(f"/proc/{own}/task/{own}/children").read_text()
    return [int(each) for each in listed.split()]


def main() -> None:
    """Answer orders until there are none."""
    # a process that a test left becomes a child of this one, and is ended with the trial
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for name in _IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(tried(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
