"""A supervisor with workers that do as they are told: `python -m … FOLDER copies|programs`.

Of each worker a file of FOLDER says its seat and process.  The first life of seat 1 says that it
serves and hangs; all others beat, and the seat that the file `stubborn` names does not stop.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from functools import partial
from pathlib import Path

import msgspec

from personal_server.app.shared_memory import SharedMemory
from personal_server.app.signals import stop_before_serving
from personal_server.app.supervisor import BEAT, READY, Patience, Supervisor
from personal_server.app.worker_processes import WorkerCopies, WorkerPrograms, WorkerRole

PATIENCE = Patience(hung_seconds=0.8, closing_seconds=0.6, look_seconds=0.1, away_seconds=0.4)
BEAT_SECONDS = 0.05


def work(folder: Path, role: WorkerRole) -> int:
    """One worker."""
    stop_before_serving()
    line = socket.socket(fileno=role.line)
    stubborn = folder / "stubborn"
    is_stubborn = stubborn.exists() and stubborn.read_text() == str(role.number)
    signal.signal(signal.SIGTERM, signal.SIG_IGN if is_stubborn else signal.SIG_DFL)
    hangs = role.number == 1 and not any(folder.glob("1.*"))
    line.send(READY)
    (folder / f"{role.number}.{os.getpid()}").touch()
    while hangs:
        time.sleep(1)
    while True:
        line.send(BEAT)
        time.sleep(BEAT_SECONDS)


def supervise(folder: Path, kind: str) -> int:
    """Two of them; the exit code."""
    memory = SharedMemory.make(2)
    role = WorkerRole(number=-1, of=2, listeners=(), memory=memory.descriptor)
    if kind == "copies":
        workers = WorkerCopies(partial(work, folder))
    else:
        workers = WorkerPrograms((sys.executable, "-m", __spec__.name, str(folder), kind))
    return Supervisor(role, memory, workers, patience=PATIENCE).run()


if __name__ == "__main__":
    folder, kind, *role = sys.argv[1:]
    if role:
        work(Path(folder), msgspec.json.decode(role[0], type=WorkerRole))
    sys.exit(supervise(Path(folder), kind))
