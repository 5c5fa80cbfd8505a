"""A DAV account read by a process of its own, through requests that this one sends.

The process (`dav_worker.py`) has given up the network: it names requests and parses the answers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Protocol, cast

import msgspec

from pdpp_kernel.system.confinement import MB
from pdpp_sources.dav.dav_messages import (
    MISBEHAVES,
    DavAsk,
    DavEnd,
    DavFailed,
    DavMessage,
    DavNext,
    DavStatus,
    DavTask,
    DavTrouble,
    DavWords,
    SeenInAccount,
    receive_from_reader,
    send_dav,
)

WORKER = "pdpp_sources.dav.dav_worker"
MEMORY_BYTES = 384 * MB


class DavWire(Protocol):
    """What sends requests to a DAV server.  Raises: DavTrouble."""

    def ask(self, request: DavAsk) -> DavStatus:
        """Send one; its answer is read next."""
        ...

    def words(self) -> bytes:
        """The next bytes of the answer; none at its end."""
        ...


@contextmanager
def read_dav(wire: DavWire, task: DavTask) -> Generator[Iterator[SeenInAccount]]:
    """What the process says of an account, with its end as the last."""
    process = subprocess.Popen(  # noqa: S603 (this very program)
        [sys.executable, "-P", "-s", "-S", "-m", WORKER, str(MEMORY_BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Nothing of ours goes with it: no token, no setting.
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    requests, replies = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    try:
        with suppress(BrokenPipeError):
            send_dav(requests, task)
        yield _seen(wire, requests, replies)
    finally:
        process.kill()
        process.wait()
        for stream in (requests, replies):
            with suppress(OSError):
                stream.close()


def _seen(wire: DavWire, requests: IO[bytes], replies: IO[bytes]) -> Iterator[SeenInAccount]:
    while True:
        try:
            message = receive_from_reader(replies)
        except msgspec.DecodeError:
            message = None
        match message:
            case None:
                yield DavEnd(MISBEHAVES)
                return
            case DavAsk() | DavNext():
                with suppress(BrokenPipeError):
                    send_dav(requests, _answer(wire, message))
            case _:
                yield message
                if isinstance(message, DavEnd):
                    return


def _answer(wire: DavWire, message: DavAsk | DavNext) -> DavMessage:
    try:
        return wire.ask(message) if isinstance(message, DavAsk) else DavWords(wire.words())
    except DavTrouble as trouble:
        return DavFailed(trouble.code)
