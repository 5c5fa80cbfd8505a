"""IMAP spoken by a process of its own, over a connection that this one holds.

The process (`mailbox_worker.py`) has given up the network, and gets pipes; what passes between them
and the connection is carried, counted and bounded here.
"""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

import msgspec

from pdpp_kernel.system.confinement import MB
from pdpp_sources.mailbox_messages import (
    Answered,
    AskChanges,
    AskHeads,
    AskLabels,
    AskMark,
    ListFolders,
    ListUids,
    MailboxEnd,
    MailboxReply,
    MailboxRequest,
    OpenFolder,
    WaitForChange,
    receive_reply,
)
from pdpp_sources.message_frames import send_message
from pdpp_sources.started_process import started_process

WORKER = "pdpp_sources.mailbox_worker"
MEMORY_BYTES = 256 * MB
SILENCE_SECONDS = 60.0
# A command may take so long, and longer by the time that a slow line takes for what it brings.
COMMAND_SECONDS = 120.0
# A server that looks through a folder of many mails says nothing while it reads its disk.
SEARCHES = (AskChanges, AskHeads, AskLabels, AskMark, ListFolders, ListUids, OpenFolder)
SEARCH_SILENCE_SECONDS, SEARCH_SECONDS = 300.0, 600.0
LEAST_BYTES_A_SECOND = 4 * 1024
LARGEST_ANSWER_BYTES = 96 * MB
LOOKS_A_SILENCE = 4
"""How often it is asked whether a server has been silent for too long."""
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""In seconds: a machine that is gone is noticed after a minute.  macOS calls KEEPIDLE KEEPALIVE."""
_CHUNK_BYTES = 64 * 1024
MISBEHAVES = "mailbox_misbehaves"


@dataclass(slots=True)
class WireCount:
    """What passed, in both directions; of the command under way, since when and how much."""

    received: int = 0
    sent: int = 0
    allowed_seconds: float = COMMAND_SECONDS
    allowed_silence: float = 0.0
    """How long the server may say nothing; 0 while nothing is asked of it."""

    clock: Callable[[], float] = time.monotonic
    _since: float = field(default=0.0, init=False)
    _before: int = field(default=0, init=False)
    _heard: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._since = self.clock()

    def begin_command(self) -> None:
        """One was sent."""
        self._since, self._before = self.clock(), self.received

    def begin_answer(self, silence_seconds: float, seconds: float) -> None:
        """Something is asked: how long the server may be silent, and may take for the answer."""
        self._since = self._heard = self.clock()
        self.allowed_seconds, self.allowed_silence = seconds, silence_seconds

    def end_answer(self) -> None:
        """The answer is whole: what the server says now was not asked for, and may come late."""
        self.allowed_seconds, self.allowed_silence = math.inf, 0.0

    def hear(self, size: int) -> None:
        """The server said so many bytes."""
        self._heard = self.clock()
        self.received += size

    @property
    def silent_seconds(self) -> float:
        """How long the server has said nothing though it was asked."""
        return self.clock() - self._heard if self.allowed_silence else 0.0

    def is_gone(self) -> bool:
        """Whether the server has been silent for longer than one that is at work."""
        return self.silent_seconds > self.allowed_silence

    def is_beyond(self) -> bool:
        """Whether the answer under way takes longer or is larger than any honest one."""
        got = self.received - self._before
        seconds = self.clock() - self._since
        if got > LARGEST_ANSWER_BYTES:
            return True
        return seconds > self.allowed_seconds + got / LEAST_BYTES_A_SECOND


class MailboxProcess(msgspec.Struct):
    """A process that speaks IMAP; after the end of a block there is none."""

    _requests: IO[bytes]
    _replies: IO[bytes]
    _count: WireCount
    kill: Callable[[], None]
    """End it at once; whoever waits for an answer gets none."""
    commands: int = 0
    end: MailboxEnd | None = None
    """Why there is nothing more, once it is so."""

    is_left: bool = False
    """Whether it was ended from here, for no fault of the server."""

    def ask(self, request: MailboxRequest) -> Iterator[MailboxReply]:
        """What is answered, as it comes; nothing once the conversation has ended."""
        looks = isinstance(request, SEARCHES)
        silence = SEARCH_SILENCE_SECONDS if looks else SILENCE_SECONDS
        return self._answers(request, silence, SEARCH_SECONDS if looks else COMMAND_SECONDS)

    def wait(self, seconds: int) -> Iterator[MailboxReply]:
        """What changes in the open folder for so long; silence is no sign of a cut meanwhile.

        A server that hangs is noticed when it does not answer after that time.
        """
        silence, whole = seconds + SILENCE_SECONDS, seconds + COMMAND_SECONDS
        return self._answers(WaitForChange(seconds), silence, whole)

    @property
    def silent_seconds(self) -> float:
        """How long the server has said nothing though it was asked."""
        return self._count.silent_seconds

    def leave(self) -> None:
        """End the conversation at once, whatever the server does."""
        self.is_left = True
        self.kill()

    def _answers(
        self, request: MailboxRequest, silence_seconds: float, seconds: float
    ) -> Iterator[MailboxReply]:
        if self.end is not None:
            return
        self._count.begin_answer(silence_seconds, seconds)
        try:
            with suppress(BrokenPipeError):
                send_message(self._requests, request)
            while True:
                reply = self._reply()
                if isinstance(reply, MailboxEnd):
                    self.end = reply
                    self.commands = max(self.commands, reply.commands)
                    return
                if isinstance(reply, Answered):
                    self.commands = reply.commands
                    return
                yield reply
        finally:
            self._count.end_answer()

    def _reply(self) -> MailboxReply:
        try:
            reply = receive_reply(self._replies)
        except msgspec.DecodeError:
            reply = None
        return MailboxEnd(MISBEHAVES, self.commands) if reply is None else reply


@contextmanager
def mailbox_process(wire: socket.socket, count: WireCount) -> Generator[MailboxProcess]:
    """A process that speaks over `wire`, which is closed with the block.

    Shapes: a server that is silent for a minute is taken for gone, or for five where it looks
        through a folder, as is one whose answer to a command takes too long.
    """
    wire.settimeout(SILENCE_SECONDS / LOOKS_A_SILENCE)
    _notice_death(wire)
    to_child, from_wire = os.pipe()
    to_wire, from_child = os.pipe()
    carriers = [
        threading.Thread(target=_receive, args=(wire, from_wire, count), daemon=True),
        threading.Thread(target=_send, args=(to_wire, wire, count), daemon=True),
    ]
    for each in carriers:
        each.start()
    try:
        with started_process(WORKER, MEMORY_BYTES, to_child, from_child) as process:
            yield MailboxProcess(process.requests, process.replies, count, process.kill)
    finally:
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)
        wire.close()
        for each in carriers:
            each.join()


def _notice_death(wire: socket.socket) -> None:
    """Have the system notice a server whose machine is gone, however long it may be silent."""
    if wire.family == socket.AF_UNIX:
        return
    with suppress(OSError):  # it has ended already, which macOS says here
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE.items():
            if hasattr(socket, name):  # each system has others
                wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _heard(wire: socket.socket, count: WireCount) -> bytes:
    """What the server says next; nothing once it has ended or is taken for gone."""
    while True:
        try:
            return wire.recv(_CHUNK_BYTES)
        except TimeoutError:
            if count.is_gone():
                return b""


def _receive(wire: socket.socket, pipe: int, count: WireCount) -> None:
    """Carry what the server says, until either side ends or the server is beyond its bounds."""
    with os.fdopen(pipe, "wb", 0) as out, suppress(OSError, ValueError):
        while chunk := _heard(wire, count):
            count.hear(len(chunk))
            if count.is_beyond():
                return
            while chunk:
                chunk = chunk[out.write(chunk) or 0 :]


def _send(pipe: int, wire: socket.socket, count: WireCount) -> None:
    with os.fdopen(pipe, "rb", 0) as incoming, suppress(OSError, ValueError):
        while chunk := incoming.read(_CHUNK_BYTES):
            count.sent += len(chunk)
            count.begin_command()
            wire.sendall(chunk)
