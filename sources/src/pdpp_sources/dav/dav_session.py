"""What a DAV server is asked, and what it answers."""

from __future__ import annotations

import msgspec

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.dav.dav_messages import (
    LARGEST_ITEM_BYTES,
    MISBEHAVES,
    DavMessage,
)
from pdpp_sources.dav.multistatus import DavAnswer, Multistatus, XmlRefused
from pdpp_sources.relayed_server import RelayedServer

MULTISTATUS, FOUND = 207, 200


class NotAnswered(Exception):
    """A request that this server does not answer with what it asks for; others may be."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class DavSession(msgspec.Struct):
    """Asks, and parses what is answered."""

    server: RelayedServer

    def say(self, message: DavMessage) -> None:
        """Tell the other process."""
        self.server.say(message)

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
        """One item by itself; None where it is too large.  Raises: NotAnswered, AccountTrouble."""
        status, _ = self.server.ask("GET", url, None, "")
        if status != FOUND:
            raise NotAnswered(status)
        content = b""
        for words in self.server.words():
            content += words
            if len(content) > LARGEST_ITEM_BYTES:
                return None
        return content

    def _multistatus(
        self, method: str, url: str, depth: str | None, body: str
    ) -> tuple[list[DavAnswer], str, str | None]:
        """Answers, where they came from, and a token.  Raises: NotAnswered, AccountTrouble."""
        status, at = self.server.ask(method, url, depth, body)
        if status != MULTISTATUS:
            raise NotAnswered(status)
        parser = Multistatus()
        answers: list[DavAnswer] = []
        try:
            for words in self.server.words():
                answers += parser.feed(words)
            answers += parser.feed(b"")
        except XmlRefused:
            raise AccountTrouble(MISBEHAVES) from None
        return answers, at, parser.token
