"""Runs of JMAP accounts: mail is fetched by requests of ours and read as an export is.

Source: docs/contract/feeds.md 13.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_process import JmapProcess, jmap_process
from personal_server.app.jmap_look import JmapLook
from personal_server.app.jmap_reading import JmapReading
from personal_server.app.jmap_sync import JmapSync
from personal_server.app.jmap_wire import JmapServer
from personal_server.app.mail_batches import MailBatch
from personal_server.app.mail_ledger import SyncPorts
from personal_server.app.mail_runs import MailRuns
from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.storage.feed_rows import FeedRow


@dataclass(frozen=True, slots=True)
class JmapRuns(MailRuns):
    """Runs feeds of JMAP accounts."""

    def look(
        self, feed: FeedRow, ports: SyncPorts, result: RunResult, turn: int, *, is_asked: bool
    ) -> None:
        """Look once; the result counts it.  Raises: FetchTrouble, AccountTrouble, PutOff."""
        with self._process(feed, result) as (process, place):
            JmapSync(JmapLook(feed, process, ports, result, is_asked, turn)).run(place.url)

    @contextmanager
    def fetched(self, feed: FeedRow, result: RunResult) -> Generator[Iterator[MailBatch]]:
        """The whole account in batches.  Raises: FetchTrouble."""
        try:
            with self._process(feed, result) as (process, place):
                reading = JmapReading(process, self.staged(feed), result)
                yield reading.batches(place.url, feed.chosen)
        except AccountTrouble as trouble:
            raise FetchTrouble(trouble.code) from None

    @contextmanager
    def _process(self, feed: FeedRow, result: RunResult) -> Generator[tuple[JmapProcess, WebPlace]]:
        """What reads the account; the result counts it.  Raises: FetchTrouble, AccountTrouble."""
        place, password = WebPlace.of(feed.kind, feed.place), self.secrets.password(feed)
        if password is None:
            raise FetchTrouble("sign_in_missing")
        with closing(JmapServer(place, password)) as server:
            try:
                with jmap_process(server) as process:
                    yield process, place
            finally:
                result.commands = server.requests
                result.size_bytes = server.received + server.sent
                result.pause_seconds = server.pause_seconds
                shutil.rmtree(self.staging / feed.feed_id, ignore_errors=True)
