"""Runs of mail accounts, whatever is spoken with their servers.

Rule: read only towards the account; a mail that was imported is not fetched again; a password or
token is tried once, and then the feed waits for its owner.
Source: docs/contract/feeds.md 10 and 13.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pdpp_sources.account_requests import AccountTrouble
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.mail_batches import MailBatch
from personal_server.app.mail_ledger import SyncPorts
from personal_server.app.mail_parts import ENDING, MailParts
from personal_server.app.mailbox_records import MailboxRecords
from personal_server.feeds.feed_kinds import SOURCES
from personal_server.feeds.feed_runs import FeedImporter, RunResult
from personal_server.feeds.feed_waits import FeedWaits
from personal_server.feeds.fetched_batches import NEEDS_OWNER, FetchedBatches, FetchTrouble
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.feed_stores import FeedMailStore, FeedStore


@dataclass(frozen=True, slots=True)
class MailRuns(ABC):
    """Runs feeds of mail accounts."""

    store: FeedStore
    mails: FeedMailStore
    records: MailboxRecords
    importer: FeedImporter
    staging: Path
    reader: str
    clock: Callable[[], int]
    secrets: FeedSecrets
    waits: FeedWaits

    def run(self, feed: FeedRow, *, retries: bool) -> RunResult:
        """Fetch what is new, and follow what changed.  Raises: PutOff."""
        turn = (feed.reached or 0) + 1
        result = RunResult(reached_ns=turn, is_fetched=True)
        ports = SyncPorts(
            self.store,
            self.mails,
            self.records,
            FetchedBatches(self.importer, self.staging, SOURCES[feed.kind], self.store),
            MailParts(self.staging / f"{feed.feed_id}{ENDING}"),
            self.staged(feed),
            self.reader,
            self.clock,
        )
        try:
            self.look(feed, ports, result, turn, is_asked=retries)
        except (FetchTrouble, AccountTrouble) as trouble:
            result.code = trouble.code
        result.needs_owner |= result.code in NEEDS_OWNER
        return result

    @abstractmethod
    def look(
        self, feed: FeedRow, ports: SyncPorts, result: RunResult, turn: int, *, is_asked: bool
    ) -> None:
        """Look once; the result counts it.  Raises: FetchTrouble, AccountTrouble, PutOff."""

    @abstractmethod
    def fetched(
        self, feed: FeedRow, result: RunResult
    ) -> AbstractContextManager[Iterator[MailBatch]]:
        """The whole account in batches, whatever is known of it.  Raises: FetchTrouble."""

    def staged(self, feed: FeedRow) -> Path:
        """The folder of mails that were fetched and are to be imported."""
        return self.staging / feed.feed_id / "mail"
