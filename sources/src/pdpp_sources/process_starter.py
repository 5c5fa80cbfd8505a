"""The process that fetchers come from: it has loaded what they need, and forks one for each.

Rule: it hears from who started it alone, and reads nothing that a stranger said; a fetcher has the
files that were handed in for it and no other, and confines itself before it reads the first byte.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import NoReturn

import msgspec

from pdpp_kernel.system import confinement, landlock, system_calls

MOST_FILES = 8
IDLE_SECONDS = 900.0
"""Without a fetcher for so long it ends; the next one starts another."""
STARTED, REFUSED = b"+", b"-"
_LONGEST_BYTES = 4_096
ProcessMain = Callable[[Sequence[int], int], NoReturn]
_PRELOADED = confinement, landlock, system_calls  # which every fetcher loads when it confines


class StartProcess(msgspec.Struct, array_like=True):
    """What to start; with it come a leash, and the files that the fetcher works with.

    Shapes: `module` has a `main` that takes the files and the memory; who holds the other end of
        the leash ends the fetcher by closing it.
    """

    module: str
    memory_bytes: int


@dataclass(slots=True)
class ProcessStarter:
    """Forks what is asked for, and ends it with its leash.

    Shapes: `children` are process ids by the leashes that they hang on.
    """

    control: socket.socket
    children: dict[int, int] = field(default_factory=dict[int, int])

    def run(self) -> None:
        """Until nobody is left to ask, or nobody asked for long."""
        control, poll = self.control.fileno(), select.poll()
        poll.register(control, select.POLLIN)
        while ready := poll.poll(None if self.children else IDLE_SECONDS * 1_000):
            for file, _ in ready:
                if file != control:
                    poll.unregister(file)
                    self._end(file)
                    continue
                message, files, *_ = socket.recv_fds(self.control, _LONGEST_BYTES, MOST_FILES)
                if not message:
                    return
                if self._start(msgspec.msgpack.decode(message, type=StartProcess), files):
                    poll.register(files[0], select.POLLHUP)  # which macOS tells only if asked

    def end_all(self) -> None:
        """End what runs."""
        for leash in list(self.children):
            self._end(leash)

    def _start(self, wanted: StartProcess, files: Sequence[int]) -> bool:
        """Fork one, and say so; whether that could be done."""
        main = import_module(wanted.module).main
        gc.freeze()
        leash, *own = files
        try:
            pid = os.fork()
        except OSError:
            pid = None
        if pid == 0:
            _be(main, wanted.memory_bytes, own, (self.control.fileno(), leash, *self.children))
        for each in own if pid is not None else files:
            os.close(each)
        if pid is not None:
            self.children[leash] = pid
        self.control.send(REFUSED if pid is None else STARTED)
        return pid is not None

    def _end(self, leash: int) -> None:
        """A fetcher that ended by itself waits here too, so that its number is no other's."""
        os.close(leash)
        pid = self.children.pop(leash)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _be(
    main: ProcessMain, memory_bytes: int, own: Sequence[int], others: Iterable[int]
) -> NoReturn:
    """Become a fetcher."""
    try:
        for each in others:
            os.close(each)
        gc.enable()
        main(own, memory_bytes)
    finally:
        os._exit(1)


def main() -> NoReturn:
    """Serve whoever started this process; the socket is its argument."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asked
    gc.disable()  # a walk over what all share would have each copy it
    starter = ProcessStarter(socket.socket(fileno=int(sys.argv[1])))
    try:
        starter.run()
    finally:
        starter.end_all()
        os._exit(0)


if __name__ == "__main__":
    main()
