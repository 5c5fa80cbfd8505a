"""Connections that are cut when what is asked over them takes too long, however it comes.

The time-out of a socket begins anew with every byte: who sends one byte a minute is waited for
without end, also in a TLS handshake and in the head of an answer, where no caller looks at a clock.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

OPENED, SECURED = "connection.connect_tcp.complete", "connection.start_tls.complete"
"""How httpx names the moments, in its extension `trace`, at which it has a connection, and TLS."""


class TimedConnection:
    """The connection of a client that has one at a time, and asks one thing after the other.

    Units: seconds.
    """

    def __init__(self) -> None:
        self._wire: socket.socket | None = None
        # Until what is asked is there: TLS closes the object that it begins with.
        self._ours: socket.socket | None = None
        self._timer: threading.Timer | None = None

    def trace(self, name: str, info: dict[str, Any]) -> None:
        """The extension `trace` of a request: learn which connection it goes over."""
        if name in (OPENED, SECURED):
            self.hold(info["return_value"].get_extra_info("socket"))

    def hold(self, wire: socket.socket) -> None:
        """Time this one from now on; it stays its owner's to close."""
        self._let_go()
        self._wire = wire
        if self._timer is not None:
            # not its own method: that of TLS refuses
            self._ours = socket.socket(fileno=socket.dup(wire.fileno()))

    def begin(self, seconds: float) -> None:
        """Cut the connection in so many seconds; a wait that began before ends."""
        self.end()
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """What was asked is there."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._let_go()

    def _let_go(self) -> None:
        ours, self._ours = self._ours, None
        if ours is not None:
            ours.close()

    def _cut(self) -> None:
        for wire in (self._ours, self._wire):
            if wire is not None:
                with suppress(OSError):  # it has ended by itself
                    # not its own method: that of TLS forgets first that it has TLS
                    socket.socket.shutdown(wire, socket.SHUT_RDWR)


@contextmanager
def cut_after(wire: socket.socket, seconds: float) -> Generator[None]:
    """Cut a connection that the block has not done with in time; who waits for it gets OSError."""
    timed = TimedConnection()
    timed.begin(seconds)
    timed.hold(wire)
    try:
        yield
    finally:
        timed.end()
