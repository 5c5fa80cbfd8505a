"""Mail fetched by a process of its own, over a connection that this one holds.

The process (`mailbox_worker.py`) has given up the network, and gets pipes; what passes between them
and the connection is carried, counted and bounded here.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, cast

import msgspec

from pdpp_kernel.confinement import MB
from pdpp_sources.mailbox_messages import (
    FetchMail,
    MailboxEnd,
    SeenInMailbox,
    receive_seen,
    send_mailbox,
)

WORKER = "pdpp_sources.mailbox_worker"
MEMORY_BYTES = 256 * MB
SILENCE_SECONDS = 60.0
_CHUNK_BYTES = 64 * 1024
MISBEHAVES = "mailbox_misbehaves"


@dataclass(slots=True)
class WireCount:
    """The bytes that passed, in both directions."""

    received: int = 0
    sent: int = 0


@contextmanager
def fetched_mail(
    wire: socket.socket, request: FetchMail, count: WireCount
) -> Generator[Iterator[SeenInMailbox]]:
    """What the process sends, with its end as the last; `wire` is closed with the block.

    Shapes: a server that is silent for a minute is taken for gone.
    """
    wire.settimeout(SILENCE_SECONDS)
    to_child, from_wire = os.pipe()
    to_wire, from_child = os.pipe()
    try:
        process = subprocess.Popen(  # noqa: S603 (this very program)
            [
                *(sys.executable, "-P", "-s", "-S", "-m", WORKER),
                *(str(to_child), str(from_child), str(MEMORY_BYTES)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(to_child, from_child),
            # Nothing of ours goes with it: no token, no setting.
            env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    finally:
        os.close(to_child)
        os.close(from_child)
    carriers = [
        threading.Thread(target=_receive, args=(wire, from_wire, count), daemon=True),
        threading.Thread(target=_send, args=(to_wire, wire, count), daemon=True),
    ]
    for each in carriers:
        each.start()
    try:
        requests, replies = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        with suppress(BrokenPipeError):
            send_mailbox(requests, request)
        yield _replies(replies)
    finally:
        process.kill()
        process.wait()
        with suppress(OSError):
            wire.shutdown(socket.SHUT_RDWR)
        wire.close()
        for each in carriers:
            each.join()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                cast("IO[bytes]", stream).close()


def _replies(stream: IO[bytes]) -> Iterator[SeenInMailbox]:
    while True:
        try:
            reply = receive_seen(stream)
        except msgspec.DecodeError:
            reply = None
        if reply is None:
            reply = MailboxEnd(MISBEHAVES, 0)
        yield reply
        if isinstance(reply, MailboxEnd):
            return


def _receive(wire: socket.socket, pipe: int, count: WireCount) -> None:
    """Carry what the server says, until either side ends."""
    with os.fdopen(pipe, "wb", 0) as out, suppress(OSError, ValueError):
        while chunk := wire.recv(_CHUNK_BYTES):
            count.received += len(chunk)
            while chunk:
                chunk = chunk[out.write(chunk) or 0 :]


def _send(pipe: int, wire: socket.socket, count: WireCount) -> None:
    with os.fdopen(pipe, "rb", 0) as incoming, suppress(OSError, ValueError):
        while chunk := incoming.read(_CHUNK_BYTES):
            count.sent += len(chunk)
            wire.sendall(chunk)
