"""What feeds ask of a store: themselves, their ledger and their receipts.

Source: docs/contract/feeds.md 2, 4, 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from personal_server.storage.feed_rows import FeedItemRow, FeedRow, FeedRunRow


class FeedStore(Protocol):
    """The feeds of an owner.  Raises: StorageUnavailable."""

    def feeds(self) -> list[FeedRow]:
        """All, by name."""
        ...

    def add_feed(self, feed: FeedRow) -> None:
        """Store a new one.  Raises: InvalidState where its name or place is another's."""
        ...

    def change_feed(self, feed_id: str, change: Callable[[FeedRow], FeedRow]) -> FeedRow:
        """Apply a pure change in one transaction.  Raises: NotFound; what the change raises."""
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

    def keep_feed_run(self, run: FeedRunRow) -> None:
        """Keep a receipt; one of a run that found nothing to do is added to such a one before."""
        ...

    def feed_runs(self, feed_id: str, limit: int) -> list[FeedRunRow]:
        """The receipts, newest first."""
        ...
