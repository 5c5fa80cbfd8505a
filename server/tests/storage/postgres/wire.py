"""A road to the server of the tests that counts how often somebody waits on it."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.postgresql import server

SOCKET = ".s.PGSQL.5432"
HEAD, QUERY, SYNC = 5, b"Q", b"S"
ENDS = (b"COMMIT\0", b"ROLLBACK\0")
# Whoever uses the road ends its sessions before it is closed.
CLOSING_SECONDS = 10


class Wire:
    """Sessions pass through it; `url` leads to it."""

    def __init__(self, folder: Path) -> None:
        self.url = f"postgresql://owner@/postgres?host={folder}"
        self._turns: list[bytes] = []
        self._noted = threading.Condition()
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / SOCKET))
        self._listening.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def taken(self) -> list[bytes]:
        """What was asked and waited for, and from here on none; the last was the end of one."""
        with self._noted:
            self._noted.wait_for(self._has_ended, CLOSING_SECONDS)
            turns, self._turns = self._turns, []
            return turns

    def close(self) -> None:
        """No further session comes in, and those that ended have closed what they had."""
        # who waits for the next one hears of the end, not of a socket that is closed
        self._listening.shutdown(socket.SHUT_RDWR)
        for each in self._threads:
            each.join(CLOSING_SECONDS)
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
            self._threads.append(threading.Thread(target=passed.run, daemon=True))
            self._threads[-1].start()

    def note(self, asked: bytes) -> None:
        """Somebody waits for an answer to this."""
        with self._noted:
            self._turns.append(asked)
            self._noted.notify_all()

    def _has_ended(self) -> bool:
        """Whoever ends a read waits for nothing, so that this comes a little later."""
        return not self._turns or self._turns[-1].endswith(ENDS)


class _Passed:
    """One session: whoever sends a query, or the end of several, waits for the answer."""

    def __init__(self, wire: Wire, here: socket.socket, there: socket.socket) -> None:
        self._wire, self._here, self._there = wire, here, there
        self._held = self._said = b""
        self._has_begun = False

    def run(self) -> None:
        """Until both sides ended; what nobody closes is complained of wherever it is let go."""
        with self._here, self._there:
            answering = threading.Thread(target=self._answer, daemon=True)
            answering.start()
            # a session may end before it has heard its answer
            with suppress(ConnectionError):
                self._ask()
            self._there.shutdown(socket.SHUT_WR)
            answering.join()

    def _ask(self) -> None:
        while asked := self._here.recv(1 << 16):
            self._held += asked
            self._read()  # first: whoever has the answer may ask at once what was noted
            self._there.sendall(asked)

    def _answer(self) -> None:
        with suppress(ConnectionError):
            while answered := self._there.recv(1 << 16):
                self._here.sendall(answered)
            self._here.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        """Messages are a letter and their length; the first one has no letter."""
        while len(self._held) >= HEAD:
            letter = int(self._has_begun)
            end = letter + int.from_bytes(self._held[letter : letter + 4], "big")
            if len(self._held) < end:
                return
            self._said += self._held[:end]
            if self._has_begun and self._held[:1] in (QUERY, SYNC):
                self._wire.note(self._said)
                self._said = b""
            self._has_begun = True
            self._held = self._held[end:]


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
