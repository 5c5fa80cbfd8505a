"""The server of an account, as a process without network asks it.

Source: `account_requests.py` (what both say to each other).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO

import msgspec

from pdpp_sources.account_requests import (
    AccountTrouble,
    AskServer,
    NextWords,
    NoAnswer,
    RequestMessage,
    ServerStatus,
    ServerWords,
)
from pdpp_sources.confined_worker import begin_step
from pdpp_sources.message_frames import send_message


class RelayedServer(msgspec.Struct):
    """A server, asked through the process that holds the connection.

    Shapes: `receive` gives the next message of that process; `misbehaves` is the code for one that
        is not what was asked for.
    """

    requests: IO[bytes]
    replies: IO[bytes]
    receive: Callable[[IO[bytes]], object]
    misbehaves: str

    def say(self, message: msgspec.Struct) -> None:
        """Tell the other process; it takes its time, which is none of ours."""
        send_message(self.replies, message)

    def ask(self, method: str, url: str, depth: str | None, body: str) -> tuple[int, str]:
        """The status of an answer, and the address that gave it.  Raises: AccountTrouble."""
        reply = self._reply_to(AskServer(method, url, depth, body))
        if not isinstance(reply, ServerStatus):
            raise AccountTrouble(self.misbehaves)
        return reply.status, reply.url

    def words(self) -> Iterator[bytes]:
        """The bytes of the answer, as they come.  Raises: AccountTrouble."""
        while True:
            reply = self._reply_to(NextWords())
            if not isinstance(reply, ServerWords):
                raise AccountTrouble(self.misbehaves)
            if not reply.content:
                return
            yield reply.content

    def _reply_to(self, message: RequestMessage) -> object:
        self.say(message)
        begin_step()
        reply = self.receive(self.requests)
        if isinstance(reply, NoAnswer):
            raise AccountTrouble(reply.code)
        return reply
