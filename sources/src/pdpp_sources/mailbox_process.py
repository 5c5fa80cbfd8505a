"""IMAP spoken by a process of its own, over a connection that this one holds.

The process (`mailbox_worker.py`) has given up the network, and gets pipes; what passes between them
and the connection is carried, counted and bounded here.
"""

from __future__ import annotations

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
    MailboxEnd,
    MailboxReply,
    MailboxRequest,
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
LEAST_BYTES_A_SECOND = 4 * 1024
LARGEST_ANSWER_BYTES = 96 * MB
_CHUNK_BYTES = 64 * 1024
MISBEHAVES = "mailbox_misbehaves"


@dataclass(slots=True)
class WireCount:
    """What passed, in both directions; of the command under way, since when and how much."""

    received: int = 0
    sent: int = 0
    allowed_seconds: float = COMMAND_SECONDS
    _since: float = field(default_factory=time.monotonic, init=False)
    _before: int = field(default=0, init=False)

    def begin_command(self) -> None:
        """One was sent."""
        self._since, self._before = time.monotonic(), self.received

    def is_beyond(self) -> bool:
        """Whether the answer under way takes longer or is larger than any honest one."""
        got = self.received - self._before
        seconds = time.monotonic() - self._since
        if got > LARGEST_ANSWER_BYTES:
            return True
        return seconds > self.allowed_seconds + got / LEAST_BYTES_A_SECOND


@dataclass(slots=True)
class MailboxProcess:
    """A process that speaks IMAP; after the end of a block there is none."""

    _requests: IO[bytes]
    _replies: IO[bytes]
    _wire: socket.socket
    _count: WireCount
    kill: Callable[[], None]
    """End it at once; whoever waits for an answer gets none."""
    commands: int = 0
    end: MailboxEnd | None = None
    """Why there is nothing more, once it is so."""

    def ask(self, request: MailboxRequest) -> Iterator[MailboxReply]:
        """What is answered, as it comes; nothing once the conversation has ended."""
        if self.end is not None:
            return
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

    def wait(self, seconds: int) -> Iterator[MailboxReply]:
        """What changes in the open folder for so long; silence is no sign of a cut meanwhile.

        A server that hangs is noticed when it does not answer after that time.
        """
        self._count.allowed_seconds = seconds + COMMAND_SECONDS
        self._wire.settimeout(seconds + SILENCE_SECONDS)
        try:
            yield from self.ask(WaitForChange(seconds))
        finally:
            self._count.allowed_seconds = COMMAND_SECONDS
            with suppress(OSError):
                self._wire.settimeout(SILENCE_SECONDS)

    def _reply(self) -> MailboxReply:
        try:
            reply = receive_reply(self._replies)
        except msgspec.DecodeError:
            reply = None
        return MailboxEnd(MISBEHAVES, self.commands) if reply is None else reply


@contextmanager
def mailbox_process(wire: socket.socket, count: WireCount) -> Generator[MailboxProcess]:
    """A process that speaks over `wire`, which is closed with the block.

    Shapes: a server that is silent for a minute is taken for gone, as is one whose answer to a
        command takes too long.
    """
    wire.settimeout(SILENCE_SECONDS)
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
            yield MailboxProcess(process.requests, process.replies, wire, count, process.kill)
    finally:
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)
        wire.close()
        for each in carriers:
            each.join()


def _receive(wire: socket.socket, pipe: int, count: WireCount) -> None:
    """Carry what the server says, until either side ends or the server is beyond its bounds."""
    with os.fdopen(pipe, "wb", 0) as out, suppress(OSError, ValueError):
        while chunk := wire.recv(_CHUNK_BYTES):
            count.received += len(chunk)
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
