"""Programs that run as processes of their own under tests, the bench and the demo.

Rule: they heed signals, whatever this process ignores; and none outlives whoever stops it.

A shell that starts a command in the background has SIGINT ignored in it and in all that it starts,
`nohup` has SIGHUP, and a server leaves an ignored signal ignored.  So where this process ignores
one, a program is started by way of a Python that restores it and becomes that program: its process
id, its files and its environment stay the same.  Another user than this one may not run this
Python, which lies in somebody's home; what becomes that user, starts by way of `env`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

STOP_SECONDS = 60
HEEDED = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM)
# Python ignores SIGPIPE and SIGXFSZ for itself, and a program begins without that.
_RESTORING = (
    "import os, signal, sys\n"
    "for name in ('SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGTERM', 'SIGPIPE', 'SIGXFSZ'):\n"
    "    signal.signal(getattr(signal, name), signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


@overload
def started(
    command: Sequence[str | Path], *, text: Literal[True], **options: Any
) -> subprocess.Popen[str]: ...
@overload
def started(
    command: Sequence[str | Path], *, text: Literal[False] = False, **options: Any
) -> subprocess.Popen[bytes]: ...
def started(
    command: Sequence[str | Path], *, text: bool = False, **options: Any
) -> subprocess.Popen[Any]:
    """Start a program that heeds signals; `options` are those of `subprocess.Popen`."""
    ignored = any(signal.getsignal(number) is signal.SIG_IGN for number in HEEDED)
    restoring = _restoring(is_other_user="user" in options) if ignored else []
    return subprocess.Popen([*restoring, *map(str, command)], text=text, **options)


def _restoring(*, is_other_user: bool) -> list[str]:
    """What starts a program with its signals heeded: the words before the program's own."""
    if is_other_user:
        return ["/usr/bin/env", "--default-signal"]
    return [sys.executable, "-I", "-S", "-c", _RESTORING]


def stop(
    process: subprocess.Popen[Any], number: int = signal.SIGTERM, seconds: float = STOP_SECONDS
) -> int:
    """Send a signal and wait for the end: the exit code.

    Raises: TimeoutExpired, when a program that did not end has been killed.
    """
    process.send_signal(number)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def stopped(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> str:
    """Stop a program whose standard error is a pipe: what is still in that pipe.

    Raises: TimeoutExpired, when a program that did not end has been killed.
    """
    process.send_signal(number)
    try:
        return process.communicate(timeout=STOP_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
