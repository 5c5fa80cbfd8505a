"""What feeds noted of their items, as far as it goes with an account that is erased."""

from __future__ import annotations

from personal_server.storage.feed_rows import FeedItemRow, FeedMailRow, FeedRow
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.fixed_tables import ErasureRow
from personal_server.storage.sql.statements import delete, exists, row_from, select

FORGET_LEDGER = (
    delete(FeedItemRow, FeedItemRow.feed_id),
    delete(FeedMailRow, FeedMailRow.feed_id),
)
"""Of one feed: its items, and the mails of a mailbox."""

_FEED = select(FeedRow, FeedRow.feed_id)
_ERASED_WHOLE = (
    f"{exists(ErasureRow, ErasureRow.subject_id, ErasureRow.connection_id)}"
    f" AND {ErasureRow.stream} IS NULL LIMIT 1"
)


def takes_lines(session: Session, subject_id: str, feed_id: str) -> bool:
    """Whether a feed may note anything: none that was removed, nor one whose account was erased,
    while it ran.
    """
    line = session.first(_FEED, (subject_id, feed_id))
    if line is None:
        return False
    accounts = row_from(FeedRow, line).connection_ids
    return not any(session.first(_ERASED_WHOLE, (subject_id, each)) for each in accounts)


def forget_ledgers_of(session: Session, subject_id: str, connection_id: str) -> None:
    """Forget the ledgers of feeds that filled an account: they name its records and files.

    Such a feed runs no more until its owner has it begin anew.
    """
    for line in session.rows(select(FeedRow), (subject_id,)):
        feed = row_from(FeedRow, line)
        if connection_id in feed.connection_ids:
            for forget in FORGET_LEDGER:
                session.run(forget, (subject_id, feed.feed_id))
