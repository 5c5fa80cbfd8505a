"""A JMAP account read by a process of its own, through requests that this one sends.

The process (`jmap_worker.py`) has given up the network: it names requests and parses the answers.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import IO

import msgspec

from pdpp_kernel.system.confinement import MB
from pdpp_sources.account_requests import (
    AccountTrouble,
    AskServer,
    NextWords,
    RequestMessage,
    RequestWire,
    ServerWords,
    answer_over,
    ended_in_time,
)
from pdpp_sources.jmap.jmap_messages import (
    MISBEHAVES,
    JmapAnswered,
    JmapEnd,
    JmapReply,
    JmapRequest,
    MailTaken,
    TakeMail,
    from_jmap,
)
from pdpp_sources.mailbox_messages import LARGEST_MAIL_BYTES
from pdpp_sources.message_frames import send_message
from pdpp_sources.started_process import started_process

WORKER = "pdpp_sources.jmap.jmap_worker"
MEMORY_BYTES = 256 * MB


@dataclass(slots=True)
class JmapProcess:
    """A process that reads an account; after the end of a block there is none.

    Shapes: `_words` are those of the answer under way, where they are kept here too.
    """

    _wire: RequestWire
    _requests: IO[bytes]
    _replies: IO[bytes]
    _words: bytearray | None = field(default=None, init=False)

    def ask(self, request: JmapRequest) -> Iterator[JmapReply]:
        """What is answered, as it comes.  Raises: AccountTrouble."""
        with suppress(BrokenPipeError):
            send_message(self._requests, request)
        while True:
            try:
                message = from_jmap(self._replies)
            except msgspec.DecodeError:
                message = None
            match message:
                case None:
                    raise AccountTrouble(MISBEHAVES)
                case AskServer() | NextWords():
                    with suppress(BrokenPipeError):
                        send_message(self._requests, self._answer(message))
                case JmapEnd():
                    raise AccountTrouble(message.code)
                case JmapAnswered():
                    return
                case _:
                    yield message

    def mail(self, blob: str, size: int) -> tuple[bytes, MailTaken]:
        """A mail whole, and the key of its record.  Raises: AccountTrouble."""
        self._words = bytearray()
        try:
            taken = [e for e in self.ask(TakeMail(blob, size)) if isinstance(e, MailTaken)]
            if not taken:
                raise AccountTrouble(MISBEHAVES)
            return bytes(self._words), taken[0]
        finally:
            self._words = None

    def _answer(self, message: AskServer | NextWords) -> RequestMessage:
        answer = answer_over(self._wire, message)
        kept = self._words
        if kept is not None and len(kept) <= LARGEST_MAIL_BYTES and isinstance(answer, ServerWords):
            kept += answer.content
        return answer


@contextmanager
def jmap_process(wire: RequestWire) -> Generator[JmapProcess]:
    """A process that reads over requests which `wire` sends."""
    with started_process(WORKER, MEMORY_BYTES) as process, ended_in_time(process.kill):
        yield JmapProcess(wire, process.requests, process.replies)
