"""Waits at the inbox of a mailbox for new mail, over a connection of its own.

Rule: it reads no mail and stores nothing: what it is told makes the feed run.
Source: docs/contract/feeds.md 10; RFC 2177.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

from pdpp_sources.mailbox_messages import FolderChanged, OpenFolder, SignIn
from pdpp_sources.mailbox_process import MailboxProcess, WireCount, mailbox_process
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.mailbox_folders import INBOX
from personal_server.app.mailbox_runs import MailPlace
from personal_server.app.mailbox_talk import ask, sign_in_to
from personal_server.feeds.feed_watches import NEVER_TOLD
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.storage.feed_rows import FeedRow

IDLE_SECONDS = 28 * 60
"""A server may end a connection that waits for 29 minutes (RFC 2177)."""


@dataclass(slots=True)
class MailboxWatch:
    """Waits at one inbox.

    Shapes: `idle_seconds` until the wait is renewed, by which a server that hangs is noticed.
    """

    secrets: FeedSecrets
    idle_seconds: int
    _process: MailboxProcess | None = field(default=None, init=False)
    _is_ended: Event = field(default_factory=Event, init=False)

    def wait(self, feed: FeedRow, changed: Callable[[], None]) -> str:
        """Until the connection is lost or it is ended; the code of why."""
        is_fetched = not feed.chosen or INBOX in (each.upper() for each in feed.chosen)
        if not is_fetched or self.secrets.password(feed) is None:
            return NEVER_TOLD
        try:
            place = MailPlace.of(feed.place)
            sign_in = place.sign_in_of(feed, self.secrets)
            wire = place.connected()
            with mailbox_process(wire, WireCount()) as process:
                self._process = process
                self._wait(process, sign_in, changed)
        except FetchTrouble as trouble:
            return trouble.code
        return ""

    def end(self) -> None:
        """At once, whatever the server does."""
        self._is_ended.set()
        if self._process is not None:
            self._process.kill()

    def _wait(self, process: MailboxProcess, sign_in: SignIn, changed: Callable[[], None]) -> None:
        """Raises: FetchTrouble."""
        if self._is_ended.is_set():
            return
        if "IDLE" not in sign_in_to(process, sign_in):
            raise FetchTrouble(NEVER_TOLD)
        for _ in ask(process, OpenFolder(INBOX)):
            pass
        changed()  # what came since the last run and before the folder was open is told by nobody
        while not self._is_ended.is_set():
            for each in process.wait(self.idle_seconds):
                if isinstance(each, FolderChanged):
                    changed()
            if process.end is not None:
                raise FetchTrouble(process.end.code or "")
