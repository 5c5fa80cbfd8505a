"""Fetchers: processes without network that say what to ask a server, and parse its answers.

To start a program and load what parses takes a tenth of a second, which is more than all that a
poll of an account that has nothing new does. So one process loads it (`process_starter.py`), and
each fetcher comes from that.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

import msgspec

from pdpp_sources.process_starter import STARTED, StartProcess

STARTER = "pdpp_sources.process_starter"
ANSWERS_WITHIN_SECONDS = 60.0
"""One that is silent for longer, though it had only to load or to fork, is ended."""


@dataclass(frozen=True, slots=True)
class StartedProcess:
    """One that runs."""

    requests: IO[bytes]
    replies: IO[bytes]
    _leash: IO[bytes]

    def kill(self) -> None:
        """End it at once; whoever waits for a reply gets none."""
        self._leash.close()


@dataclass(slots=True)
class Starter:
    """The process that all of this one's fetchers come from, once one is needed."""

    answers_within_seconds: float = ANSWERS_WITHIN_SECONDS
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _control: socket.socket | None = None
    _process: subprocess.Popen[bytes] | None = None

    def start(self, wanted: StartProcess, files: Sequence[int]) -> None:
        """Raises: OSError."""
        message = msgspec.msgpack.encode(wanted)
        with self._lock:
            said = b""
            for _ in range(2):  # one that was idle for long has ended
                with suppress(OSError):
                    control = self._control or self._begin()
                    socket.send_fds(control, [message], files)
                    if said := control.recv(1):
                        break
                self._leave()
        if said != STARTED:
            raise OSError("no process that fetches could be started")

    def _begin(self) -> socket.socket:
        control, theirs = socket.socketpair()
        control.settimeout(self.answers_within_seconds)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (this very program)
                [sys.executable, "-P", "-s", "-S", "-m", STARTER, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                # Nothing of ours goes with it: no token, no setting.
                env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._control = control
        return control

    def _leave(self) -> None:
        """End it, though it hangs; what came from it ends soon after it."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


_starter = Starter()


@contextmanager
def started_process(module: str, memory_bytes: int, *files: int) -> Generator[StartedProcess]:
    """One that runs `module`, and ends with the block; `files` are for it, and closed here.

    Raises: OSError.
    """
    with ExitStack() as theirs, ExitStack() as ours:
        for each in files:
            theirs.callback(os.close, each)
        to_child, requests = os.pipe()
        theirs.callback(os.close, to_child)
        out = os.fdopen(requests, "wb")
        ours.callback(_close, out)
        replies, from_child = os.pipe()
        theirs.callback(os.close, from_child)
        incoming = ours.enter_context(os.fdopen(replies, "rb"))
        theirs_of_leash, leash = os.pipe()
        theirs.callback(os.close, theirs_of_leash)
        held = ours.enter_context(os.fdopen(leash, "wb", 0))
        _starter.start(
            StartProcess(module, memory_bytes), (theirs_of_leash, to_child, from_child, *files)
        )
        theirs.close()
        yield StartedProcess(out, incoming, held)


def _close(stream: IO[bytes]) -> None:
    with suppress(OSError):  # what was not read by one that ended
        stream.close()
