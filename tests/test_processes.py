"""Programs under test heed signals, and are started and stopped in one place."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.processes import HEEDED, started, stop, stopped

ROOT = Path(__file__).resolve().parents[1]
SLEEPING = (
    "import signal, sys, time\n"
    "print([signal.getsignal(n) is signal.SIG_IGN for n in (1, 2, 3, 15)], file=sys.stderr)\n"
    "sys.stderr.flush()\n"
    "time.sleep(600)"
)
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)"


@contextmanager
def ignoring(number: int) -> Generator[None]:
    """As in the background of a shell, or behind `nohup`."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", HEEDED)
def test_a_program_heeds_what_its_parent_ignores(number: int) -> None:
    with ignoring(number):
        process = started([sys.executable, "-c", SLEEPING], stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        assert process.stderr.readline() == "[False, False, False, False]\n"
        stopped(process, number)
    assert process.returncode in (-number, 1)  # Python ends by an exception at SIGINT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("number", HEEDED)
def test_a_program_of_another_user_heeds_it_too(number: int) -> None:
    """Who may run no Python that lies in this user's home."""
    with ignoring(number):
        process = started(
            ["/bin/sh", "-c", "echo >&2; exec sleep 600"],
            stderr=subprocess.PIPE,
            text=True,
            user="nobody",
        )
        assert process.stderr is not None
        assert process.stderr.readline() == "\n"
        stopped(process, number)
    assert process.returncode == -number


def test_a_program_that_does_not_end_is_killed_and_the_test_fails() -> None:
    process = started([sys.executable, "-c", DEAF], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            stop(process, seconds=0.1)
    assert process.returncode == -signal.SIGKILL


def test_whoever_is_stopped_by_a_signal_is_started_here() -> None:
    """A program that is begun elsewhere can only be killed: any other signal may be ignored."""
    strays = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for folder in ("kernel", "sources", "adapter", "server", "tests", "bench", "demo")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "src" not in path.parts and path.name != "processes.py"
        for call in signals_to_others(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert strays == []


def signals_to_others(tree: ast.Module) -> list[ast.Call]:
    """Calls that send a signal other than KILL, in a module that begins programs by itself."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    if not any(ast.unparse(call.func) == "subprocess.Popen" for call in calls):
        return []
    named = [
        call for call in calls if ast.unparse(call.func).endswith(("terminate", "send_signal"))
    ]
    return [call for call in named if "SIGKILL" not in ast.unparse(call)]
