"""Runs that wait for a server elsewhere: for how long it has said nothing, and what ends the wait.

Rule: who waits for a silent server holds nobody up, and ends at once when nobody wants it to go on.
Source: docs/contract/feeds.md 3 and 10.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

SILENT_SECONDS = 60.0
"""After which a server counts as silent; the wait for it may last longer."""


class ServerTalk(Protocol):
    """What speaks with a server."""

    @property
    def silent_seconds(self) -> float:
        """How long the server has said nothing though it was asked."""
        ...

    def leave(self) -> None:
        """End it at once, whatever the server does."""
        ...


@dataclass(slots=True)
class FeedWaits:
    """The conversations under way in this process, by feed."""

    _talks: dict[str, ServerTalk] = field(default_factory=dict[str, ServerTalk], init=False)
    _is_over: bool = field(default=False, init=False)

    @contextmanager
    def under_way(self, feed_id: str, talk: ServerTalk) -> Generator[None]:
        """Know a conversation while a block lasts."""
        self._talks[feed_id] = talk
        if self._is_over:  # it was connecting when all were left
            talk.leave()
        try:
            yield
        finally:
            self._talks.pop(feed_id, None)

    def silent_seconds(self, feed_id: str) -> float:
        """How long the server of a feed has been silent; 0 where that is not long."""
        talk = self._talks.get(feed_id)
        seconds = 0.0 if talk is None else talk.silent_seconds
        return seconds if seconds >= SILENT_SECONDS else 0.0

    def leave(self, feed_id: str) -> None:
        """End the conversation of a feed, if there is one."""
        talk = self._talks.get(feed_id)
        if talk is not None:
            talk.leave()

    def leave_all(self) -> None:
        """End all conversations, and those that are about to begin."""
        self._is_over = True
        for feed_id in list(self._talks):
            self.leave(feed_id)
