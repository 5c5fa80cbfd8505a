"""One confined process that reads, and what is said to it and by it."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from typing import BinaryIO, Self

import msgspec

from pdpp_kernel.source_item import (
    LARGEST_BLOB_BYTES,
    Skipped,
    SourceBlob,
    SourceItem,
    SourceRecord,
)
from pdpp_kernel.system.confinement import Limits
from pdpp_kernel.texts import parse_text
from pdpp_sources.common.errors import ExportError
from pdpp_sources.common.resume_point import Place
from pdpp_sources.read_ahead import read_ahead
from pdpp_sources.reader_channel import (
    SLATE_BYTES,
    Slate,
    receive_reply,
    send,
)
from pdpp_sources.reader_messages import (
    BlobFacts,
    Broken,
    End,
    Message,
    Read,
    Ready,
    RecordItem,
    Reply,
    SkippedItem,
)
from pdpp_sources.reader_refusals import reader_failed, too_costly
from pdpp_sources.started_process import READER, started_process

_BUFFER_BYTES = 256 * 1024


class ReaderEnded(Exception):
    """The process ended while it read; `place` is where it stood.

    Shapes: `fault` is an error of its own, if it was one.
    """

    def __init__(self, costly: Place | None, fault: str | None = None) -> None:
        super().__init__()
        self.place = costly
        self.fault = fault

    def refusal(self, package: str | None) -> ExportError:
        """What to tell where it cannot be read on; `package` is that of the reader, if not ours."""
        return too_costly() if self.fault is None else reader_failed(package)


class ReaderChild:
    """One process, until it ends."""

    def __init__(self, limits: Limits) -> None:
        with ExitStack() as opened:
            shared = opened.enter_context(tempfile.TemporaryFile())
            shared.truncate(SLATE_BYTES)
            self._slate = Slate(shared.fileno(), limits.seconds)
            self._process = opened.enter_context(
                started_process(
                    READER, limits.memory_bytes, os.dup(shared.fileno()), seconds=limits.seconds
                )
            )
            self._opened = opened.pop_all()
        self._requests, self._replies = self._process.requests, self._process.replies
        self._ready: Ready | None = None
        self._is_ahead = False
        self.is_idle = True
        self.used_zone = False
        self.places: tuple[tuple[object, ...], ...] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, whatever it does."""
        self._opened.close()

    def ended_by_time(self) -> bool:
        """End it, where it has not; whether the system had done so, since its time was up."""
        return self._process.end() == -signal.SIGPROF

    def wait_until_ready(self) -> Ready:
        """Until it has given up what it can. Raises: ExportTooCostly, if it does not start."""
        if self._ready is None:
            ready = receive_reply(self._replies)
            if not isinstance(ready, Ready):
                raise too_costly()
            self._ready = ready
        return self._ready

    def ask(self, request: Message, content: BinaryIO | None = None) -> Reply:
        """The reply to a request, and to the bytes that follow it. Raises: ReaderEnded."""
        self._send(request, content)
        reply = self._next()
        self.is_idle = True
        return reply

    def items(self, request: Read) -> Iterator[SourceItem]:
        """The items. Raises: ReaderEnded."""
        if not self._is_ahead:
            self._replies = self._opened.enter_context(read_ahead(self._replies))
            self._is_ahead = True
        self._send(request)
        while True:
            match reply := self._next():
                case RecordItem():
                    blobs = tuple(map(self._blob, reply.blobs))
                    yield SourceRecord(
                        reply.stream, reply.data, reply.position, blobs, reply.thread
                    )
                case SkippedItem():
                    yield skipped_of(reply)
                case End():
                    self.is_idle, self.used_zone = True, reply.used_zone
                    return
                case _:
                    raise ReaderEnded(self._slate.place())

    def _blob(self, facts: BlobFacts) -> SourceBlob:
        if facts.size_bytes > LARGEST_BLOB_BYTES:
            raise ReaderEnded(self._slate.place())
        content = self._replies.read(facts.size_bytes)
        if len(content) < facts.size_bytes:
            raise ReaderEnded(self._slate.place())
        return SourceBlob(
            facts.json_path,
            facts.mime_type,
            facts.sha256,
            facts.size_bytes,
            facts.filename,
            partial(BytesIO, content),
        )

    def _send(self, request: Message, content: BinaryIO | None = None) -> None:
        self.wait_until_ready()
        self.is_idle = False
        try:
            send(self._requests, request)
            while content is not None and (chunk := content.read(_BUFFER_BYTES)):
                self._requests.write(chunk)
            self._requests.flush()
        except BrokenPipeError:
            raise ReaderEnded(self._slate.place()) from None

    def _next(self) -> Reply:
        try:
            reply = receive_reply(self._replies)
        except msgspec.DecodeError:
            reply = None
        if reply is None or isinstance(reply, Broken):
            raise ReaderEnded(self._slate.place(), reply.fault if reply else None)
        return reply


def skipped_of(skipped: SkippedItem) -> Skipped:
    """What was passed over, as it is told."""
    return Skipped(skipped.where, skipped.code, parse_text(skipped.reason), skipped.position)
