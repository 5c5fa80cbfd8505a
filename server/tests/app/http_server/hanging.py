"""A supervisor with workers that do as they are told: `python -m … FOLDER`.

Of each worker a file of FOLDER says its seat and process.  The first life of seat 1 says that it
serves and hangs; all others beat, and the seat that the file `stubborn` names does not stop.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

from personal_server.app.shared_memory import SharedMemory
from personal_server.app.supervisor import BEAT, READY, Patience, Supervisor, WorkerRole

PATIENCE = Patience(hung_seconds=0.8, closing_seconds=0.6, look_seconds=0.1, away_seconds=0.4)
BEAT_SECONDS = 0.05


def work(folder: Path, role: WorkerRole) -> None:
    """One worker."""
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


def supervise(folder: Path) -> int:
    """Two of them; the exit code."""
    memory = SharedMemory.make(2)
    role = WorkerRole(number=-1, of=2, listeners=(), memory=memory.descriptor)
    command = (sys.executable, "-m", "server.tests.app.http_server.hanging", str(folder))
    return Supervisor(role, memory, command, patience=PATIENCE).run()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        work(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=WorkerRole))
    sys.exit(supervise(Path(sys.argv[1])))
