"""Requests to the server of an account: a process without network names them, another sends them.

Rule: the one that sends holds the connection and the password, which is in none of these messages;
the one that names them parses what is answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Protocol

import msgspec

LONGEST_RUN_SECONDS = 5 * 3600.0
"""Longer than whoever holds the connection asks anything over it."""


class AccountTrouble(Exception):
    """Why an account cannot be read on."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class RequestMessage(msgspec.Struct, array_like=True, tag=True):
    """One of the messages below."""


class AskServer(RequestMessage):
    """Send a request."""

    method: str
    url: str
    depth: str | None
    body: str


class NextWords(RequestMessage):
    """Send the next words of the answer."""


class ServerStatus(RequestMessage):
    """A server answers; its words are asked for one by one."""

    status: int
    url: str


class ServerWords(RequestMessage):
    """Some bytes of an answer; none are its end."""

    content: bytes


class NoAnswer(RequestMessage):
    """There is no answer, and why."""

    code: str


class RequestWire(Protocol):
    """What sends requests to a server.  Raises: AccountTrouble."""

    def ask(self, request: AskServer) -> ServerStatus:
        """Send one; its answer is read next."""
        ...

    def words(self) -> bytes:
        """The next bytes of the answer; none at its end."""
        ...


def answer_over(
    wire: RequestWire, message: AskServer | NextWords
) -> ServerStatus | ServerWords | NoAnswer:
    """What a wire brings for a process that has none."""
    try:
        return wire.ask(message) if isinstance(message, AskServer) else ServerWords(wire.words())
    except AccountTrouble as trouble:
        return NoAnswer(trouble.code)


@contextmanager
def ended_in_time(kill: Callable[[], None]) -> Generator[None]:
    """End a process after the longest run: one that was broken out of may say nothing for ever."""
    timer = threading.Timer(LONGEST_RUN_SECONDS, kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
