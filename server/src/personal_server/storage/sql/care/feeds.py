"""Feeds in a database: a lease is taken where a feed changes, by one writer at a time.

Source: docs/contract/feeds.md 4 and 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import PurePath

from pdpp_kernel.errors import InvalidState, NotFound
from personal_server.storage.feed_rows import (
    FOLDER_KIND,
    FeedItemRow,
    FeedRow,
    FeedRunRow,
)
from personal_server.storage.ports.feed_stores import FeedChange, FeedNote
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.logs.authorization_transaction import SqlAuthorizationTransaction
from personal_server.storage.sql.records.feed_ledgers import FORGET_LEDGER, takes_lines
from personal_server.storage.sql.statements import (
    delete,
    insert,
    replacing,
    row_from,
    select,
    values_of,
)

RECEIPTS_KEPT = 200
_FEEDS = f"{select(FeedRow)} ORDER BY {FeedRow.name}"
_FEED = select(FeedRow, FeedRow.feed_id)
_ITEMS = f"{select(FeedItemRow, FeedItemRow.feed_id)} ORDER BY {FeedItemRow.item}"
_RUNS = f"{select(FeedRunRow, FeedRunRow.feed_id)} ORDER BY {FeedRunRow.began_at_ns} DESC LIMIT ?"
_FORGET_ITEM = delete(FeedItemRow, FeedItemRow.feed_id, FeedItemRow.item)
_FORGET_RUN = delete(FeedRunRow, FeedRunRow.feed_id, FeedRunRow.began_at_ns)
_FORGET = (
    delete(FeedRow, FeedRow.feed_id),
    delete(FeedRunRow, FeedRunRow.feed_id),
    *FORGET_LEDGER,
)
# The receipt that is one too old.
_OLDEST = (
    f"{select(FeedRunRow, FeedRunRow.feed_id, columns=(FeedRunRow.began_at_ns,))}"
    f" ORDER BY {FeedRunRow.began_at_ns} DESC LIMIT 1 OFFSET ?"
)


class SqlFeeds:
    """The feeds of one subject in one database."""

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self._subject_id = subject_id

    def feeds(self) -> list[FeedRow]:
        """All, by name."""
        with self._database.read() as session:
            return [row_from(FeedRow, each) for each in session.rows(_FEEDS, (self._subject_id,))]

    def add_feed(self, feed: FeedRow) -> None:
        """Looked for and written in one transaction.  Raises: InvalidState."""
        with self._database.write() as session:
            for line in session.rows(_FEEDS, (self._subject_id,)):
                known = row_from(FeedRow, line)
                if known.place == feed.place:
                    raise InvalidState(
                        "A feed has this folder or account already.",
                        next_step="`pdpp feed list` shows all feeds.",
                    )
                if FOLDER_KIND == known.kind == feed.kind and _overlap(known.place, feed.place):
                    raise InvalidState(
                        "A feed watches a folder in this one, or around it: each file would be"
                        " imported twice.",
                        next_step="Watch the outer folder alone. `pdpp feed list` shows all feeds.",
                    )
                if known.name == feed.name:
                    raise InvalidState(
                        "There is a feed of this name already.",
                        next_step="Choose another with --name. `pdpp feed list` shows all feeds.",
                    )
            session.run(insert(FeedRow), (self._subject_id, *values_of(feed)))

    def change_feed(
        self, feed_id: str, change: FeedChange, note: FeedNote | None = None
    ) -> FeedRow:
        """One writer at a time, so of two that want the lease one sees the other's; a process that
        ends between the change and what is told of it leaves neither.
        """
        with self._database.write() as session:
            feed = self._found(session, feed_id)
            changed = change(feed)
            if changed != feed:
                session.run(replacing(FeedRow), (self._subject_id, *values_of(changed)))
            event = None if note is None else note(feed, changed)
            if event is not None:
                SqlAuthorizationTransaction(session, self._subject_id).insert(event)
            return changed

    def remove_feed(self, feed_id: str) -> None:
        """With all that belongs to it."""
        with self._database.write() as session:
            self._found(session, feed_id)
            for forget in _FORGET:
                session.run(forget, (self._subject_id, feed_id))

    def feed_items(self, feed_id: str) -> list[FeedItemRow]:
        """The ledger, by item."""
        with self._database.read() as session:
            lines = session.rows(_ITEMS, (self._subject_id, feed_id))
        return [row_from(FeedItemRow, each) for each in lines]

    def keep_feed_items(
        self, feed_id: str, items: Iterable[FeedItemRow], forgotten: Iterable[str] = ()
    ) -> None:
        """Nothing is kept of a feed that was removed meanwhile, or whose account was erased."""
        subject = self._subject_id
        with self._database.write() as session:
            if not takes_lines(session, subject, feed_id):
                return
            session.many(_FORGET_ITEM, [(subject, feed_id, each) for each in forgotten])
            session.many(replacing(FeedItemRow), [(subject, *values_of(each)) for each in items])

    def forget_ledger(self, feed_id: str) -> None:
        """With the mails of a mailbox."""
        with self._database.write() as session:
            for forget in FORGET_LEDGER:
                session.run(forget, (self._subject_id, feed_id))

    def keep_feed_run(self, run: FeedRunRow) -> None:
        """Nothing is kept of a feed that was removed meanwhile."""
        feed_key = (self._subject_id, run.feed_id)
        with self._database.write() as session:
            if session.first(_FEED, feed_key) is None:
                return
            line = session.first(_RUNS, (*feed_key, 1))
            last = None if line is None else row_from(FeedRunRow, line)
            if last is not None and is_idle(last) and is_idle(run) and last.seen == run.seen:
                run = replace(run, began_at_ns=last.began_at_ns, runs=last.runs + 1)
            session.run(replacing(FeedRunRow), (self._subject_id, *values_of(run)))
            outdated = session.value(_OLDEST, (*feed_key, RECEIPTS_KEPT))
            if outdated is not None:
                session.run(_FORGET_RUN, (*feed_key, outdated))

    def feed_runs(self, feed_id: str, limit: int) -> list[FeedRunRow]:
        """The receipts, newest first."""
        with self._database.read() as session:
            lines = session.rows(_RUNS, (self._subject_id, feed_id, limit))
        return [row_from(FeedRunRow, each) for each in lines]

    def _found(self, session: Session, feed_id: str) -> FeedRow:
        """Raises: NotFound."""
        line = session.first(_FEED, (self._subject_id, feed_id))
        if line is None:
            raise NotFound("There is no such feed.", next_step="`pdpp feed list` shows all feeds.")
        return row_from(FeedRow, line)


def _overlap(one: str, other: str) -> bool:
    """Whether one of two folders lies in the other."""
    return PurePath(one).is_relative_to(other) or PurePath(other).is_relative_to(one)


def is_idle(run: FeedRunRow) -> bool:
    """Whether a run found nothing to do, and nothing wrong."""
    found = (run.new, run.changed, run.gone, run.rejected, run.settling, run.records_new)
    return run.outcome == "succeeded" and not any(found)
