"""How a worker begins: as a copy of the process that supervises, or as a program of its own.

Rule: a copy shares with all others the memory of what was imported before it, and serves at once;
only a process of one thread may be copied.  Libraries of macOS do not bear being copied: there a
worker is a program, which imports everything itself.
Source: docs/running.md (Several processes).
"""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from multiprocessing.context import ForkProcess
from typing import Protocol

import msgspec

from personal_server.app.shared_memory import LEADER
from personal_server.app.signals import STOPPING


class WorkerRole(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told at its start.

    Shapes: the descriptors that it inherits are `listeners`, `figures` (where they are asked for),
        `memory`, `claim` (on a file) and `line`, by which it says that it serves; the end of that
        says that nobody supervises any more; `is_first` is whether nobody was greeted yet.
    """

    number: int
    of: int
    listeners: tuple[int, ...]
    memory: int
    line: int = -1
    figures: int | None = None
    claim: int | None = None
    is_first: bool = False
    port: int | None = None
    data_dir: str | None = None

    @property
    def leads(self) -> bool:
        """Whether this is the one that does what is done once."""
        return self.number == LEADER

    @property
    def inherited(self) -> list[int]:
        """The file descriptors that a worker inherits."""
        every = (*self.listeners, self.memory, self.line, self.figures, self.claim)
        return [descriptor for descriptor in every if descriptor is not None]


class WorkerProcess(Protocol):
    """A worker that runs, or ran."""

    def wait(self) -> int:
        """Its exit code, once it ended; negative, of the signal that ended it."""
        ...

    def terminate(self) -> None:
        """Let it stop."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


class Workers(Protocol):
    """What begins them."""

    def begin(self, role: WorkerRole, let_go: Callable[[], None]) -> WorkerProcess:
        """A worker of that role; a copy lets go of what only its supervisor may hold."""
        ...


class WorkerPrograms:
    """A worker is a program, whose last argument is its role as JSON."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def begin(self, role: WorkerRole, let_go: Callable[[], None]) -> WorkerProcess:
        """It inherits the descriptors of its role and nothing else."""
        del let_go
        command = [*self._command, msgspec.json.encode(role).decode()]
        return subprocess.Popen(command, pass_fds=role.inherited)  # noqa: S603 (this very program)


class WorkerCopies:
    """A worker is a copy of this process, which does `work` and exits with what that returns."""

    def __init__(self, work: Callable[[WorkerRole], int]) -> None:
        self._work = work

    def begin(self, role: WorkerRole, let_go: Callable[[], None]) -> WorkerProcess:
        """It heeds no signal that stops a server until its work does (`stop_before_serving`)."""
        # Heard before, it would be heard as the supervisor hears it, whose copy it is.
        heeded = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            process = multiprocessing.get_context("fork").Process(
                target=self._begun, args=(role, let_go)
            )
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heeded)
        return _Copy(process)

    def _begun(self, role: WorkerRole, let_go: Callable[[], None]) -> None:
        let_go()
        sys.exit(self._work(role))


class _Copy:
    def __init__(self, process: ForkProcess) -> None:
        self._process = process
        self.terminate, self.kill = process.terminate, process.kill

    def wait(self) -> int:
        self._process.join()
        code = self._process.exitcode
        assert code is not None  # noqa: S101 (it ended)
        return code
