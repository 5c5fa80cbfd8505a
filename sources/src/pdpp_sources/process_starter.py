"""The process that others come from: it has loaded what they need, and forks one for each.

Fetchers, readers and the imports of feeds come from it.  Rule: it hears from who started it and
from imports alone, and reads nothing that a stranger said; what comes from it has the files that
were handed in for it and no other, and confines itself before it reads a stranger's first byte.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import NoReturn

import msgspec

from pdpp_kernel.system import confinement, landlock, system_calls

MOST_FILES = 8
IDLE_SECONDS = 900.0
"""With nothing to do for so long it ends; what comes next starts another."""
STARTED, REFUSED = b"+", b"-"
END = struct.Struct("<i")
"""How one ended, as `subprocess` says it; told over its leash."""
_LONGEST_BYTES = 4_096
ProcessMain = Callable[[Sequence[int], float, int], NoReturn]
_PRELOADED = confinement, landlock, system_calls  # which every confined one loads


class StartProcess(msgspec.Struct, array_like=True):
    """What to start; with it come a leash, and the files that it works with.

    Shapes: `module` has a `main` that takes the files, the seconds and the memory; who holds the
        other end of the leash ends the process by closing it; where it `asks`, the first file
        after the leash is for the starter, which hears there what the process wants started.
    """

    module: str
    seconds: float
    memory_bytes: int
    asks: bool = False


class ProcessStarter(msgspec.Struct):
    """Forks what is asked for, and ends it with its leash.

    Shapes: `first` is the socket of the process that started this one; `asking` are the sockets
        that requests come from, by their numbers, `first` among them; `children` are process ids by
        the numbers of their leashes.
    """

    first: socket.socket
    asking: dict[int, socket.socket] = msgspec.field(default_factory=dict[int, socket.socket])
    children: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    poll: select.poll = msgspec.field(default_factory=select.poll)

    def run(self) -> None:
        """Until the first has nothing more to ask, or nobody asked for long."""
        first = self.first.fileno()
        self._listen(self.first)
        while ready := self.poll.poll(None if self.children else IDLE_SECONDS * 1_000):
            for file, _ in ready:
                if file in self.children:
                    self._end(file)
                elif not self._hear(self.asking[file]):
                    if file == first:
                        return
                    self.poll.unregister(file)
                    self.asking.pop(file).close()

    def end_all(self) -> None:
        """End what runs."""
        for leash in list(self.children):
            self._end(leash)

    def _listen(self, control: socket.socket) -> None:
        self.asking[control.fileno()] = control
        self.poll.register(control, select.POLLIN)

    def _hear(self, control: socket.socket) -> bool:
        """Start what is asked for; whether there may be more."""
        try:
            message, files, *_ = socket.recv_fds(control, _LONGEST_BYTES, MOST_FILES)
        except OSError:
            return False
        if not message:
            return False
        is_started = self._start(msgspec.msgpack.decode(message, type=StartProcess), files)
        with suppress(OSError):  # it ended meanwhile
            control.send(STARTED if is_started else REFUSED)
        return True

    def _start(self, wanted: StartProcess, files: Sequence[int]) -> bool:
        """Fork one; whether that could be done."""
        main = import_module(wanted.module).main
        gc.freeze()
        leash, *own = files
        heard = socket.socket(fileno=own.pop(0)) if wanted.asks else None
        try:
            pid = os.fork()
        except OSError:
            pid = None
        if pid == 0:
            if heard is not None:
                heard.close()
            _be(main, wanted, own, (leash, *self.asking, *self.children))
        for each in own:
            os.close(each)
        if pid is None:
            os.close(leash)
            if heard is not None:
                heard.close()
            return False
        self.children[leash] = pid
        self.poll.register(leash, select.POLLIN)
        if heard is not None:
            self._listen(heard)
        return True

    def _end(self, leash: int) -> None:
        """One that ended by itself waits here too, so that its number is no other's."""
        self.poll.unregister(leash)
        pid = self.children.pop(leash)
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:  # it has no group of its own yet
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        with socket.socket(fileno=leash) as ended_leash, suppress(OSError):
            ended_leash.send(END.pack(os.waitstatus_to_exitcode(status)))


def _be(
    main: ProcessMain, wanted: StartProcess, own: Sequence[int], others: Iterable[int]
) -> NoReturn:
    """Become the process that is wanted."""
    try:
        os.setsid()
        kept = {0, 1, 2, *own, max(1_024, *others) + 1}  # what was loaded may hold files, too
        for low, high in pairwise(sorted(kept)):
            os.closerange(low + 1, high)
        gc.enable()
        main(own, wanted.seconds, wanted.memory_bytes)
    finally:
        os._exit(1)


def main() -> NoReturn:
    """Serve whoever started this process; its arguments are the socket, and what to load now."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asked
    gc.disable()  # a walk over what all share would have each copy it
    for module in sys.argv[2:]:
        import_module(module)
    starter = ProcessStarter(socket.socket(fileno=int(sys.argv[1])))
    try:
        starter.run()
    finally:
        starter.end_all()
        os._exit(0)


if __name__ == "__main__":
    main()
