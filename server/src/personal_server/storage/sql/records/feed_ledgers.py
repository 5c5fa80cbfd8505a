"""What feeds noted of their items, as far as it goes with an account that is erased."""

from __future__ import annotations

from personal_server.storage.feed_rows import FeedItemRow, FeedMailRow, FeedRow
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.statements import delete, row_from, select

FORGET_LEDGER = (
    delete(FeedItemRow, FeedItemRow.feed_id),
    delete(FeedMailRow, FeedMailRow.feed_id),
)
"""Of one feed: its items, and the mails of a mailbox."""


def forget_ledgers_of(session: Session, subject_id: str, connection_id: str) -> None:
    """Forget the ledgers of feeds that filled an account: they name its records and files.

    Such a feed runs no more until its owner has it begin anew.
    """
    for line in session.rows(select(FeedRow), (subject_id,)):
        feed = row_from(FeedRow, line)
        if connection_id in feed.connection_ids:
            for forget in FORGET_LEDGER:
                session.run(forget, (subject_id, feed.feed_id))
