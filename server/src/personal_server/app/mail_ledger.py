"""The mails of a feed as one look keeps them: its rows, and the records that are to tell of them.

Rule: a run that was killed leaves no record that the next one does not look for; what is gone is
deleted only where its owner has that followed, and once two looks found it gone.
Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from pdpp_kernel.uid_ranges import LARGEST_UID
from personal_server.app.mail_batches import MailBatch, folder_aside
from personal_server.app.mail_parts import MailParts
from personal_server.app.mailbox_records import MailboxRecords, lonely_keys
from personal_server.feeds.feed_ledger import ItemState
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.fetched_batches import FetchedBatches, FetchTrouble
from personal_server.storage.feed_rows import FOLLOW, UNSURE, FeedItemRow, FeedMailRow, FeedRow
from personal_server.storage.ports.feed_stores import FeedMailStore, FeedStore

ROWS_AT_ONCE = 1_000
FEW_GONE = 20
EMPTIED = "mailbox_emptied"
UNTOLD = "\nuntold"
"""The line of the ledger that says that records may not tell yet what the ledger knows."""


class SyncPorts(msgspec.Struct, frozen=True):
    """What a look needs of the rest."""

    store: FeedStore
    mails: FeedMailStore
    records: MailboxRecords
    batches: FetchedBatches
    parts: MailParts
    staged: Path
    reader: str
    clock: Callable[[], int]


@dataclass(slots=True)
class MailLedger:
    """What is known of the mails of a feed, in the look that is its `turn`.

    Shapes: `largest` is above every number of a mail; `names` says what folders are called, where
        that is not what the rows call them; `is_noted` where the ledger says that records are to be
        told.
    """

    feed: FeedRow
    ports: SyncPorts
    result: RunResult
    turn: int
    largest: int = LARGEST_UID
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    is_noted: bool = False
    _touched: set[str] = field(default_factory=set[str], init=False)

    @property
    def accounts(self) -> set[str]:
        """Those that the feed filled."""
        return {*self.feed.connection_ids, *self.result.connection_ids}

    def pages(self, folder: str, above: int, upto: int) -> Iterator[list[FeedMailRow]]:
        """Rows of a folder, by number."""
        mails = self.ports.mails
        while rows := mails.mails_of(self.feed.feed_id, folder, above, ROWS_AT_ONCE):
            yield [row for row in rows if row.uid <= upto]
            above = rows[-1].uid
            if above >= upto:
                return

    def keep(self, rows: Sequence[FeedMailRow]) -> None:
        """Write rows, and have their records tell it."""
        if rows:
            self.note()
            self.ports.mails.keep_mails(self.feed.feed_id, rows)
            self.touch(rows)

    def mark_gone(self, rows: Sequence[FeedMailRow]) -> None:
        """Note mails that this look found gone."""
        self.result.gone += len(rows)
        self.keep([replace(row, gone_at=self.turn) for row in rows])

    def set_aside(self, folder: str, uidvalidity: int) -> None:
        """Have the numbers of a folder that is no more stand in nobody's way."""
        for rows in self.pages(folder, 0, self.largest):
            aside = folder_aside(folder, uidvalidity)
            gone = [replace(row, folder=aside, gone_at=self.turn) for row in rows]
            self.result.gone += sum(row.gone_at is None for row in rows)
            forgotten = [(folder, row.uid) for row in rows]
            self.note()
            self.ports.mails.keep_mails(self.feed.feed_id, gone, forgotten)
            self.touch(rows)

    def take(self, batch: MailBatch) -> None:
        """Import what was fetched, and name its records before and after.

        Raises: FetchTrouble; PutOff.
        """
        unsure = batch.unsure(self.turn)
        if batch.rows:
            self.note()
        if batch.mails:
            # Who is killed here leaves records: should their mails go meanwhile, these rows tell.
            self.ports.mails.keep_mails(self.feed.feed_id, unsure)
            self.ports.batches.take(self.feed, batch.folder, batch.path, self.result)
        if batch.rows:
            forgotten = [(row.folder, row.uid) for row in unsure]
            self.ports.mails.keep_mails(self.feed.feed_id, batch.rows, forgotten)

    def note(self) -> None:
        """Have the next run know, should this one be killed, that records are to be told."""
        if not self.is_noted:
            self.is_noted = True
            self.keep_line(UNTOLD, "")

    def forget_note(self) -> None:
        """All records tell what the ledger knows."""
        if self.is_noted:
            self.ports.store.keep_feed_items(self.feed.feed_id, (), [UNTOLD])

    def touch_all(self) -> None:
        """Have the records of all mails tell what the ledger knows."""
        for folder in self.ports.mails.mail_counts(self.feed.feed_id):
            self.touch_folder(folder)

    def touch_folder(self, folder: str) -> None:
        """Have the records of all mails of a folder tell what the ledger knows."""
        for rows in self.pages(folder, 0, self.largest):
            self.touch(rows)

    def touch(self, rows: Iterable[FeedMailRow]) -> None:
        """Have the records of some mails tell what the ledger knows."""
        self._touched.update(row.record_key for row in rows if row.record_key)
        if len(self._touched) >= ROWS_AT_ONCE:
            self.tell()

    def tell(self) -> None:
        """Write what records that were touched tell."""
        if self._touched and self.accounts:
            count = self.ports.records.tell(
                self.feed.feed_id, self._touched, self.accounts, self.names
            )
            self.result.changed += count
            self.result.records_updated += count
        self._touched.clear()

    def keep_line(self, item: str, mark: str) -> None:
        """Write one line beside the mails."""
        self.ports.store.keep_feed_items(self.feed.feed_id, [self.line(item, mark)])

    def keep_lines(self, marks: Mapping[str, str], forgotten: Iterable[str] = ()) -> None:
        """Write some lines beside the mails, and forget others."""
        lines = [self.line(item, mark) for item, mark in marks.items()]
        self.ports.store.keep_feed_items(self.feed.feed_id, lines, forgotten)

    def line(self, item: str, mark: str) -> FeedItemRow:
        """A line beside the mails."""
        now_ns = self.ports.clock()
        return FeedItemRow(
            feed_id=self.feed.feed_id,
            item=item,
            mark=mark,
            state=ItemState.STORED,
            reader=self.ports.reader,
            at_ns=now_ns,
            since_ns=now_ns,
        )

    def settle(self, before: int, *, is_asked: bool) -> None:
        """Forget mails that were gone already in a look before, and no look found since.

        Raises: FetchTrouble where that would be most of the account.
        """
        feed_id, mails = self.feed.feed_id, self.ports.mails
        follows = self.feed.deletions == FOLLOW
        if not self.accounts:
            return
        if follows and not is_asked:
            gone = mails.gone_count(feed_id, before)
            if gone > FEW_GONE and gone > sum(mails.mail_counts(feed_id).values()):
                self.result.needs_owner = True
                raise FetchTrouble(EMPTIED)
        while rows := mails.gone_mails(feed_id, before, ROWS_AT_ONCE):
            copies = mails.mails_by_key(feed_id, [row.record_key for row in rows])
            lonely, kept = lonely_keys(rows, copies)
            if follows and lonely:  # they are no copies of anything from here on
                deleted = [replace(e, code=UNSURE) for e in rows if e.record_key in lonely]
                mails.keep_mails(feed_id, deleted)
                deleted_count = self.ports.records.delete(lonely, self.accounts)
                self.result.records_deleted += deleted_count
            mails.keep_mails(feed_id, (), [(row.folder, row.uid) for row in rows])
            self._touched |= kept
            self.tell()
