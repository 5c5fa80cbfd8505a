"""A DAV account read by a process of its own, through requests that this one sends.

The process (`dav_worker.py`) has given up the network: it names requests and parses the answers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import IO

import msgspec

from pdpp_kernel.system.confinement import MB
from pdpp_sources.account_requests import (
    AskServer,
    NextWords,
    RequestWire,
    answer_over,
    ended_in_time,
)
from pdpp_sources.dav.dav_messages import (
    MISBEHAVES,
    DavEnd,
    DavTask,
    SeenInAccount,
    receive_from_reader,
)
from pdpp_sources.message_frames import send_message
from pdpp_sources.started_process import started_process

WORKER = "pdpp_sources.dav.dav_worker"
MEMORY_BYTES = 384 * MB


@contextmanager
def read_dav(wire: RequestWire, task: DavTask) -> Generator[Iterator[SeenInAccount]]:
    """What the process says of an account, with its end as the last."""
    with started_process(WORKER, MEMORY_BYTES) as process, ended_in_time(process.kill):
        with suppress(BrokenPipeError):
            send_message(process.requests, task)
        yield _seen(wire, process.requests, process.replies)


def _seen(wire: RequestWire, requests: IO[bytes], replies: IO[bytes]) -> Iterator[SeenInAccount]:
    while True:
        try:
            message = receive_from_reader(replies)
        except msgspec.DecodeError:
            message = None
        match message:
            case None:
                yield DavEnd(MISBEHAVES)
                return
            case AskServer() | NextWords():
                with suppress(BrokenPipeError):
                    send_message(requests, answer_over(wire, message))
            case _:
                yield message
                if isinstance(message, DavEnd):
                    return
