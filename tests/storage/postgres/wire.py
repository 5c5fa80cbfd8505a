"""A road to the server of the tests that counts how often somebody waits on it."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.postgresql import server

SOCKET = ".s.PGSQL.5432"


class Wire:
    """Sessions pass through it; `url` leads to it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"postgresql://owner@/postgres?host={folder}"
        self._turns: list[bytes] = []
        self._lock = threading.Lock()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / SOCKET))
        self._listening.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def turns(self) -> int:
        """How often something was asked after something was answered."""
        with self._lock:
            return len(self._turns)

    def taken(self) -> list[bytes]:
        """What each of them began with, and from here on none."""
        with self._lock:
            turns, self._turns = self._turns, []
            return turns

    def close(self) -> None:
        """No further session comes in."""
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listening.accept()
            except OSError:
                return
            there = socket.socket(socket.AF_UNIX)
            there.connect(str(server().folder / SOCKET))
            passed = _Passed(self, here, there)
            for work in (passed.ask, passed.answer):
                threading.Thread(target=work, daemon=True).start()

    def note(self, asked: bytes) -> None:
        """Somebody waits for an answer to this."""
        with self._lock:
            self._turns.append(asked)


class _Passed:
    """One session: what follows an answer is another turn."""

    def __init__(self, wire: Wire, here: socket.socket, there: socket.socket) -> None:
        self._wire, self._here, self._there = wire, here, there
        self._is_answered = True

    def ask(self) -> None:
        while asked := self._here.recv(1 << 16):
            # a goodbye is not waited for
            if self._is_answered and asked[:1] != b"X":
                self._is_answered = False
                self._wire.note(asked)
            self._there.sendall(asked)
        self._there.shutdown(socket.SHUT_WR)

    def answer(self) -> None:
        while answered := self._there.recv(1 << 16):
            self._is_answered = True
            self._here.sendall(answered)
        self._here.shutdown(socket.SHUT_WR)


@contextmanager
def wire() -> Generator[Wire, None, None]:
    """One that nobody uses yet."""
    # the path of a socket is short
    with tempfile.TemporaryDirectory(prefix="pdpp-wire-", dir="/tmp") as folder:
        found = Wire(Path(folder))
        try:
            yield found
        finally:
            found.close()
