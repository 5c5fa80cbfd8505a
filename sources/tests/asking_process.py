"""A process for tests that has another started by the one that it came from itself."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence
from typing import NoReturn

from pdpp_sources.started_process import STARTS, started_process


def main(files: Sequence[int], _seconds: float, memory_bytes: int) -> NoReturn:
    """It tells its own name and the other's, each with that of its parent."""
    STARTS.ask_through(socket.socket(fileno=files[2]))
    with started_process("sources.tests.asked_process", memory_bytes) as other:
        other.requests.write(b"names\n")
        other.requests.flush()
        told = f"{os.getpid()} {os.getppid()} {other.replies.readline().decode()}"
        os.write(files[3], told.encode())
        while True:
            signal.pause()
