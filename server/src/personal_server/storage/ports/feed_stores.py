"""What feeds ask of a store: themselves, their ledger and their receipts.

Source: docs/contract/feeds.md 2, 4, 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.feed_rows import FeedItemRow, FeedMailRow, FeedRow, FeedRunRow

FeedChange = Callable[[FeedRow], FeedRow]
FeedNote = Callable[[FeedRow, FeedRow], AuditRow | None]
"""What the owner's log says of a change, by the feed before and after; None where nothing."""


class FeedStore(Protocol):
    """The feeds of an owner.  Raises: StorageUnavailable."""

    def feeds(self) -> list[FeedRow]:
        """All, by name."""
        ...

    def add_feed(self, feed: FeedRow) -> None:
        """Store a new one.  Raises: InvalidState where its name or place is another's."""
        ...

    def change_feed(
        self, feed_id: str, change: FeedChange, note: FeedNote | None = None
    ) -> FeedRow:
        """Apply a pure change in one transaction, with what the owner's log is told of it.

        Raises: NotFound; what the change raises.
        """
        ...

    def remove_feed(self, feed_id: str) -> None:
        """Forget it with its ledger and its receipts.  Raises: NotFound."""
        ...

    def feed_items(self, feed_id: str) -> list[FeedItemRow]:
        """The ledger, by item."""
        ...

    def keep_feed_items(
        self, feed_id: str, items: Iterable[FeedItemRow], forgotten: Iterable[str] = ()
    ) -> None:
        """Write lines of the ledger, and forget those of items that have another name."""
        ...

    def forget_ledger(self, feed_id: str) -> None:
        """Forget what is known of the items of its place, and have all imported anew."""
        ...

    def keep_feed_run(self, run: FeedRunRow) -> None:
        """Keep a receipt; one of a run that found nothing to do is added to such a one before."""
        ...

    def feed_runs(self, feed_id: str, limit: int) -> list[FeedRunRow]:
        """The receipts, newest first."""
        ...


class FeedMailStore(Protocol):
    """The mails of mailboxes that are fed.  Raises: StorageUnavailable."""

    def mails_of(self, feed_id: str, folder: str, above: int, limit: int) -> list[FeedMailRow]:
        """Those of a folder above a UID, by UID; also those that are gone."""
        ...

    def mail_counts(self, feed_id: str) -> dict[str, int]:
        """How many are there in each folder, without those that are gone."""
        ...

    def mail_count(self, feed_id: str, folder: str) -> int:
        """How many are there in a folder, without those that are gone."""
        ...

    def gone_count(self, feed_id: str, before: int) -> int:
        """How many were found gone in a look before that one."""
        ...

    def mails_at(self, feed_id: str, folder: str, uids: Sequence[int]) -> list[FeedMailRow]:
        """Those of a folder with these UIDs."""
        ...

    def copies(self, feed_id: str, copies: Sequence[str]) -> list[FeedMailRow]:
        """Those that are copies of one of these mails and became a record."""
        ...

    def rows_of_copies(self, feed_id: str, copies: Sequence[str]) -> list[FeedMailRow]:
        """All that are copies of one of these mails, also those that became no record."""
        ...

    def mails_by_key(self, feed_id: str, keys: Sequence[str]) -> list[FeedMailRow]:
        """Those that are one of these records, by folder."""
        ...

    def gone_mails(self, feed_id: str, before: int, limit: int) -> list[FeedMailRow]:
        """Those that were found gone in a look before that one."""
        ...

    def keep_mails(
        self,
        feed_id: str,
        mails: Iterable[FeedMailRow],
        forgotten: Iterable[tuple[str, int]] = (),
    ) -> None:
        """Write some, and forget others by folder and UID."""
        ...
