"""Runs of JMAP accounts: mail is fetched by requests of ours and read as an export is.

Rule: read only towards the account; a mail that was imported is not fetched again; a password or
token is tried once, and then the feed waits for its owner.
Source: docs/contract/feeds.md 13.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_process import JmapProcess, jmap_process
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.jmap_reading import JmapReading
from personal_server.app.jmap_sync import JmapSync
from personal_server.app.jmap_wire import JmapServer
from personal_server.app.mail_batches import MailBatch
from personal_server.app.mail_ledger import SyncPorts
from personal_server.app.mail_parts import ENDING, MailParts
from personal_server.app.mailbox_records import SOURCE, MailboxRecords
from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_runs import FeedImporter, RunResult
from personal_server.feeds.fetched_batches import NEEDS_OWNER, FetchedBatches, FetchTrouble
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedMailStore, FeedStore

ServerOf = Callable[[WebPlace, str], JmapServer]


@dataclass(frozen=True, slots=True)
class JmapRuns:
    """Runs feeds of JMAP accounts."""

    store: FeedStore
    mails: FeedMailStore
    records: MailboxRecords
    importer: FeedImporter
    staging: Path
    reader: str
    clock: Callable[[], int]
    secrets: FeedSecrets
    server_of: ServerOf = JmapServer

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Fetch what is new, and follow what changed.  Raises: PutOff."""
        turn = (feed.reached or 0) + 1
        result = RunResult(reached_ns=turn, is_fetched=True)
        ports = SyncPorts(
            self.store,
            self.mails,
            self.records,
            FetchedBatches(self.importer, self.staging, SOURCE),
            MailParts(self.staging / f"{feed.feed_id}{ENDING}"),
            self.staging / feed.feed_id / "mail",
            self.reader,
            self.clock,
        )
        try:
            with self._process(feed, result) as (process, place):
                JmapSync(feed, process, ports, result, retries, turn).run(place.url)
        except (FetchTrouble, AccountTrouble) as trouble:
            result.code = trouble.code
        result.needs_owner |= result.code in NEEDS_OWNER
        return result

    @contextmanager
    def fetched(self, feed: FeedRow, result: RunResult) -> Generator[Iterator[MailBatch]]:
        """The whole account in batches.  Raises: FetchTrouble."""
        try:
            with self._process(feed, result) as (process, place):
                reading = JmapReading(process, self.staging / feed.feed_id / "mail", result)
                yield reading.batches(place.url, feed.chosen)
        except AccountTrouble as trouble:
            raise FetchTrouble(trouble.code) from None

    @contextmanager
    def _process(self, feed: FeedRow, result: RunResult) -> Generator[tuple[JmapProcess, WebPlace]]:
        """What reads the account; the result counts it.  Raises: FetchTrouble, AccountTrouble."""
        place, password = WebPlace.of(feed.kind, feed.place), self.secrets.password(feed)
        if password is None:
            raise FetchTrouble("sign_in_missing")
        with closing(self.server_of(place, password)) as server:
            try:
                with jmap_process(server) as process:
                    yield process, place
            finally:
                result.commands = server.requests
                result.size_bytes = server.received + server.sent
                result.pause_seconds = server.pause_seconds
                shutil.rmtree(self.staging / feed.feed_id, ignore_errors=True)
