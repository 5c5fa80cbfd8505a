"""Processes that read, fetch or import, forked from one that has loaded what they need.

To start a program and load what parses takes a tenth of a second, which is more than all that a
poll of an account that has nothing new does, and memory that each would hold for itself.  So one
process loads it (`process_starter.py`), and each comes from that.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

import msgspec

from pdpp_sources.process_starter import END, STARTED, StartProcess

STARTER = "pdpp_sources.process_starter"
READER = "pdpp_sources.reader_worker"
ANSWERS_WITHIN_SECONDS = 60.0
"""One that is silent for longer, though it had only to load or to fork, is ended."""
_BUFFER_BYTES = 256 * 1024


class StartedProcess(msgspec.Struct):
    """One that runs.

    Shapes: `requests` and `replies` are pipes to it and from it.
    """

    requests: IO[bytes]
    replies: IO[bytes]
    _leash: socket.socket
    _ended: int | None = None

    def kill(self) -> None:
        """End it at once; whoever waits for a reply gets none."""
        with suppress(OSError):  # it has ended
            self._leash.shutdown(socket.SHUT_WR)

    def end(self) -> int | None:
        """End it, and wait until that is done: how it ended, as `subprocess` says it, if known."""
        self.kill()
        if self._ended is None:
            with suppress(OSError):
                content = self._leash.recv(END.size, socket.MSG_WAITALL)
                self._ended = END.unpack(content)[0] if len(content) == END.size else None
        return self._ended


class Starter(msgspec.Struct):
    """Has processes forked from one that it begins when the first is needed.

    Shapes: `preloaded` are the modules that this one loads before it is asked for any.
    """

    answers_within_seconds: float = ANSWERS_WITHIN_SECONDS
    preloaded: tuple[str, ...] = ()
    _lock: threading.Lock = msgspec.field(default_factory=threading.Lock)
    _control: socket.socket | None = None
    _process: subprocess.Popen[bytes] | None = None

    def start(self, wanted: StartProcess, files: Sequence[int]) -> None:
        """Raises: OSError."""
        message = msgspec.msgpack.encode(wanted)
        with self._lock:
            answer = b""
            for _ in range(2):  # one that was idle for long has ended
                with suppress(OSError):
                    control = self._control or self._begin()
                    socket.send_fds(control, [message], files)
                    if answer := control.recv(1):
                        break
                self.leave()
        if answer != STARTED:
            raise OSError("no process could be started")

    def ask_through(self, control: socket.socket) -> None:
        """Begin none, but ask the one that this process was forked from itself."""
        control.settimeout(self.answers_within_seconds)
        self._control = control

    def begin(self, preloaded: tuple[str, ...]) -> None:
        """Begin that one before it is needed: it loads modules while this process does others."""
        self.preloaded = preloaded
        with self._lock, suppress(OSError):  # whoever needs one is told
            self._control = self._control or self._begin()

    def _begin(self) -> socket.socket:
        control, theirs = socket.socketpair()
        control.settimeout(self.answers_within_seconds)
        arguments = [STARTER, str(theirs.fileno()), *self.preloaded]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (this very program)
                [sys.executable, "-P", "-s", "-S", "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                # Nothing of ours goes with it: no token, no setting. Threads are refused to
                # libraries.
                env={
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "OMP_THREAD_LIMIT": "1",
                },
            )
        self._control = control
        return control

    def leave(self) -> None:
        """End it, though it hangs; what came from it ends soon after it."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


STARTS = Starter()
"""That of this process."""


@contextmanager
def started_process(
    module: str, memory_bytes: int, *files: int, seconds: float = 0.0, asks: bool = False
) -> Generator[StartedProcess]:
    """One that runs `module`, and ends with the block; `files` are for it, and closed here.

    Shapes: one that `asks` gets, after the pipes, a socket for `Starter.ask_through`.
    Raises: OSError.
    """
    with ExitStack() as theirs, ExitStack() as ours:
        for each in files:
            theirs.callback(os.close, each)
        to_child, requests = os.pipe()
        theirs.callback(os.close, to_child)
        out = os.fdopen(requests, "wb", _BUFFER_BYTES)
        ours.callback(_close, out)
        replies, from_child = os.pipe()
        theirs.callback(os.close, from_child)
        incoming = ours.enter_context(os.fdopen(replies, "rb", _BUFFER_BYTES))
        leash, theirs_of_leash = socket.socketpair()
        theirs.enter_context(theirs_of_leash)
        leash.settimeout(ANSWERS_WITHIN_SECONDS)
        process = StartedProcess(out, incoming, ours.enter_context(leash))
        pair = socket.socketpair() if asks else ()
        ends = [theirs.enter_context(each).fileno() for each in pair]
        heard, asking = ends[:1], ends[1:]  # by the starter, by the process
        handed = (theirs_of_leash.fileno(), *heard, to_child, from_child, *asking, *files)
        STARTS.start(StartProcess(module, seconds, memory_bytes, asks), handed)
        theirs.close()
        ours.callback(process.end)
        yield process


def _close(stream: IO[bytes]) -> None:
    with suppress(OSError):  # what was not read by one that ended
        stream.close()
