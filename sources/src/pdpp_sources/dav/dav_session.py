"""Requests to a DAV server, sent by the process that holds the connection."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from pdpp_sources.dav.dav_messages import (
    LARGEST_ITEM_BYTES,
    MISBEHAVES,
    DavAsk,
    DavFailed,
    DavMessage,
    DavNext,
    DavStatus,
    DavTrouble,
    DavWords,
    ToReader,
    receive_to_reader,
)
from pdpp_sources.dav.multistatus import DavAnswer, Multistatus, XmlRefused
from pdpp_sources.message_frames import send_message

STEP_SECONDS = 30.0
MULTISTATUS, FOUND = 207, 200


class NotAnswered(Exception):
    """A request that this server does not answer with what it asks for; others may be."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@dataclass(slots=True)
class DavSession:
    """Asks, and parses what is answered."""

    requests: IO[bytes]
    replies: IO[bytes]

    def say(self, message: DavMessage) -> None:
        """Tell the other process; it takes its time, which is none of ours."""
        send_message(self.replies, message)

    def listed(
        self, method: str, url: str, depth: str | None, body: str
    ) -> tuple[list[DavAnswer], str]:
        """All answers of a multistatus, and the address that gave them."""
        answers, at, _ = self._multistatus(method, url, depth, body)
        return answers, at

    def synced(self, url: str, body: str) -> tuple[list[DavAnswer], str | None]:
        """What a sync-collection answers, and its new token."""
        answers, _, token = self._multistatus("REPORT", url, "0", body)
        return answers, token

    def item(self, url: str) -> bytes | None:
        """One item by itself; None where it is too large.  Raises: NotAnswered, DavTrouble."""
        status, _ = self._ask("GET", url, None, "")
        if status != FOUND:
            raise NotAnswered(status)
        content = b""
        for words in self._words():
            content += words
            if len(content) > LARGEST_ITEM_BYTES:
                return None
        return content

    def _multistatus(
        self, method: str, url: str, depth: str | None, body: str
    ) -> tuple[list[DavAnswer], str, str | None]:
        """Answers, the address that gave them, and a token.  Raises: NotAnswered, DavTrouble."""
        status, at = self._ask(method, url, depth, body)
        if status != MULTISTATUS:
            raise NotAnswered(status)
        parser = Multistatus()
        answers: list[DavAnswer] = []
        try:
            for words in self._words():
                answers += parser.feed(words)
            answers += parser.feed(b"")
        except XmlRefused:
            raise DavTrouble(MISBEHAVES) from None
        return answers, at, parser.token

    def _ask(self, method: str, url: str, depth: str | None, body: str) -> tuple[int, str]:
        self.say(DavAsk(method, url, depth, body))
        reply = self._reply()
        if not isinstance(reply, DavStatus):
            raise DavTrouble(MISBEHAVES)
        return reply.status, reply.url

    def _words(self) -> Iterator[bytes]:
        while True:
            self.say(DavNext())
            reply = self._reply()
            if not isinstance(reply, DavWords):
                raise DavTrouble(MISBEHAVES)
            if not reply.content:
                return
            yield reply.content

    def _reply(self) -> ToReader:
        signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS)
        reply = receive_to_reader(self.requests)
        if reply is None:
            raise DavTrouble(MISBEHAVES)
        if isinstance(reply, DavFailed):
            raise DavTrouble(reply.code)
        return reply
