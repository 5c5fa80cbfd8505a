"""Several processes that serve one owner: who starts them, watches over them and ends them.

Rule: the one that supervises serves nothing and opens no database; it holds what outlives a worker
(the listening sockets, the claim on the data, the shared memory).  The first worker leads: it opens
the database before the others and does what is done in the background.  A worker that ends is
started again in its seat, at once, then after a pause that grows; one signal ends all.  A
worker that gives no sign of life is ended, and so is one that does not stop in time.
Source: docs/running.md (Several processes).
"""

from __future__ import annotations

import logging
import selectors
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf
from types import FrameType
from typing import Final, cast

import msgspec

from pdpp_kernel.system.cores import cores
from personal_server.app.peers import told_in, told_of_ended
from personal_server.app.shared_memory import LEADER, SharedMemory
from personal_server.app.signals import FORCED, STOPPING
from personal_server.app.worker_processes import WorkerProcess, WorkerRole, Workers

MOST_BY_DEFAULT: Final = 4
READY: Final = b"r"
ALONE: Final = b"a"
"""What a worker says once it serves: that others may join it, or that nobody can beside it."""
BEAT: Final = b"."
"""What its event loop says from then on, every few seconds."""
FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0
SOUND_SECONDS: Final = 5.0
"""Whoever served as long did not end because of its start."""


_log = logging.getLogger(__name__)


class Patience(msgspec.Struct, frozen=True):
    """How long is waited for workers: for a beat, and for the end after a signal.

    Units: seconds; who supervises looks every `look_seconds`, and who did not look for
        `away_seconds` was stopped itself, as by Ctrl-Z, and judges nobody by that time.
    """

    hung_seconds: float = 30.0
    closing_seconds: float = 45.0
    look_seconds: float = 5.0
    away_seconds: float = 12.0


USUAL_PATIENCE = Patience()


def workers_by_default() -> int:
    """As many as there are cores for this process, up to four."""
    return min(MOST_BY_DEFAULT, cores())


class _Worker(msgspec.Struct):
    """A worker process that runs, with the line to it."""

    process: WorkerProcess
    line: socket.socket
    began_at: float
    is_ready: bool = False
    beat_at: float = 0.0


class _Seat(msgspec.Struct):
    """One worker after the other.  Units: `due_at` on the clock of the supervisor."""

    number: int
    worker: _Worker | None = None
    due_at: float | None = None
    failures: int = 0

    @property
    def pause_seconds(self) -> float:
        """How long until the next one begins: not at all after one that failed, then doubling."""
        if self.failures < 2:
            return 0.0
        return min(FIRST_PAUSE_SECONDS * 2.0 ** (self.failures - 2), LONGEST_PAUSE_SECONDS)


class Supervisor:
    """Runs workers until a signal.

    Shapes: `role` is that of all, but for `number`, `line` and `is_first`.
    """

    def __init__(
        self,
        role: WorkerRole,
        memory: SharedMemory,
        workers: Workers,
        monotonic: Callable[[], float] = time.monotonic,
        patience: Patience = USUAL_PATIENCE,
    ) -> None:
        self._patience = patience
        self._looked_at = monotonic()
        self._role = role
        self._memory = memory
        self._told = told_in(memory)
        self._workers = workers
        self._monotonic = monotonic
        self._seats = [_Seat(number) for number in range(role.of)]
        self._selector = selectors.DefaultSelector()
        self._has_begun = False
        self._is_stopping = False

    def run(self) -> int:
        """The exit code: that of a leader that could not begin, else 0, or `FORCED`."""
        leader = self._seats[LEADER]
        with self._selector, self._woken_by_signals():
            begun = self._start(leader, is_first=True)
            while not begun.is_ready:
                self._look(None)
                if leader.worker is not begun:
                    return _exit_code(begun.process)
            self._has_begun = True
            for seat in self._seats[1:]:
                seat.due_at = self._monotonic()
            while not self._is_stopping:
                self._start_due()
                self._end_hung()
                self._look(min(self._seconds_left(), self._patience.look_seconds))
            return self._closed()

    def _closed(self) -> int:
        """Wait for all to end, but not for ever; the exit code."""
        end = self._monotonic() + self._patience.closing_seconds
        code = 0
        while running := [seat.worker for seat in self._seats if seat.worker is not None]:
            left = end - self._monotonic()
            if left <= 0 and not code:
                code = FORCED
                _log.error("%d processes did not stop in time; they are ended", len(running))
                for worker in running:
                    worker.process.kill()
            self._look(max(0.0, left) if not code else None)
        return code

    def _end_hung(self) -> None:
        """End each worker that was silent for too long; another takes its seat."""
        now, before = self._monotonic(), self._looked_at
        self._looked_at = now
        for seat in self._seats:
            worker = seat.worker
            if worker is None or not worker.is_ready:
                continue
            if now - before > self._patience.away_seconds:
                worker.beat_at = now
            silent_seconds = now - worker.beat_at
            if silent_seconds > self._patience.hung_seconds:
                _log.error(
                    "worker %d is silent for %.0f s; it is ended", seat.number, silent_seconds
                )
                worker.process.kill()
                worker.beat_at = now

    def _start_due(self) -> None:
        now = self._monotonic()
        for seat in self._seats:
            if seat.due_at is not None and seat.due_at <= now:
                seat.due_at = None
                self._start(seat)

    def _seconds_left(self) -> float:
        due = [seat.due_at for seat in self._seats if seat.due_at is not None]
        return max(0.0, min(due) - self._monotonic()) if due else inf

    def _start(self, seat: _Seat, *, is_first: bool = False) -> _Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            role = msgspec.structs.replace(
                self._role, number=seat.number, line=theirs.fileno(), is_first=is_first
            )
            process = self._workers.begin(role, lambda: self._let_go(ours))
        worker = seat.worker = _Worker(process, ours, self._monotonic())
        self._selector.register(ours, selectors.EVENT_READ, seat)
        return worker

    def _let_go(self, line: socket.socket) -> None:
        """Hold, as a copy, no end of a line: whoever is at the other would not see it end."""
        signal.set_wakeup_fd(-1)
        line.close()
        for key in [*self._selector.get_map().values()]:
            cast("socket.socket", key.fileobj).close()
        self._selector.close()

    def _look(self, timeout_seconds: float | None) -> None:
        """Wait until a worker says something or ends, a signal comes, or the time is over."""
        for key, _ in self._selector.select(timeout_seconds):
            if isinstance(key.data, _Seat):
                self._hear(key.data)
            else:
                key.data()

    def _hear(self, seat: _Seat) -> None:
        worker = seat.worker
        if worker is None:
            return
        words = worker.line.recv(64)
        if not words:
            self._note_end(seat, worker)
            return
        worker.is_ready, worker.beat_at = True, self._monotonic()
        if ALONE in words and not any(seat.worker for seat in self._seats[1:]):
            del self._seats[1:]

    def _note_end(self, seat: _Seat, worker: _Worker) -> None:
        self._selector.unregister(worker.line)
        worker.line.close()
        code = worker.process.wait()
        seat.worker = None
        self._memory.forget_counts(seat.number)  # what it had under way counts no longer
        self._told.put(seat.number, told_of_ended(seat.number, time.time_ns()))
        if self._is_stopping or not self._has_begun:
            return  # nothing is started in its place
        now = self._monotonic()
        is_sound = worker.is_ready and now - worker.began_at >= SOUND_SECONDS
        seat.failures = 1 if is_sound else seat.failures + 1
        seat.due_at = now + seat.pause_seconds
        _log.error(
            "worker %d ended (%d); it restarts in %.1f s",
            seat.number,
            code,
            seat.pause_seconds,
        )

    def _stop(self) -> None:
        """Let every worker stop as it is told to by the same signal; those that come later, too."""
        self._is_stopping = True
        for seat in self._seats:
            if seat.worker is not None:
                seat.worker.process.terminate()

    @contextmanager
    def _woken_by_signals(self) -> Generator[None, None, None]:
        """Hear signals where workers are heard, from now until the end of the process."""
        woken, waking = socket.socketpair()
        for end in (woken, waking):
            end.setblocking(False)

        def hear() -> None:
            woken.recv(64)
            self._stop()

        with woken, waking:
            signal.set_wakeup_fd(waking.fileno())
            for number in STOPPING:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` starts us
                    signal.signal(number, _heed)
            self._selector.register(woken, selectors.EVENT_READ, hear)
            try:
                yield
            finally:
                signal.set_wakeup_fd(-1)


def _heed(number: int, frame: FrameType | None) -> None:
    """What is done is done where it is heard."""
    del number, frame


def _exit_code(process: WorkerProcess) -> int:
    """As a shell says it of one that a signal ended."""
    code = process.wait()
    return 128 - code if code < 0 else code
