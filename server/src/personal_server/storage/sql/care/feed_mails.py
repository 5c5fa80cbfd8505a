"""Mails of fed mailboxes in a database, in pages: nothing here holds a mailbox as a whole.

Source: docs/contract/feeds.md 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from personal_server.storage.feed_rows import FeedMailRow
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.records.feed_ledgers import takes_lines
from personal_server.storage.sql.statements import (
    SUBJECT,
    delete,
    listed,
    replacing,
    row_from,
    select,
    values_of,
)

ASKED_AT_ONCE = 200
_OF_FOLDER = (
    f"{select(FeedMailRow, FeedMailRow.feed_id, FeedMailRow.folder)}"
    f" AND {FeedMailRow.uid} > ? ORDER BY {FeedMailRow.uid} LIMIT ?"
)
_COUNTS = (
    f"SELECT {FeedMailRow.folder}, COUNT(*) FROM {FeedMailRow.table}"  # noqa: S608
    f" WHERE {SUBJECT} = ? AND {FeedMailRow.feed_id} = ? AND {FeedMailRow.gone_at} IS NULL"
    f" GROUP BY {FeedMailRow.folder}"
)
_AT = select(FeedMailRow, FeedMailRow.feed_id, FeedMailRow.folder)
_COUNT = (
    f"SELECT COUNT(*) FROM {FeedMailRow.table} WHERE {SUBJECT} = ?"  # noqa: S608
    f" AND {FeedMailRow.feed_id} = ? AND {FeedMailRow.folder} = ? AND {FeedMailRow.gone_at} IS NULL"
)
_GONE_COUNT = (
    f"SELECT COUNT(*) FROM {FeedMailRow.table} WHERE {SUBJECT} = ?"  # noqa: S608
    f" AND {FeedMailRow.feed_id} = ? AND {FeedMailRow.gone_at} < ?"
)
_GONE = (
    f"{select(FeedMailRow, FeedMailRow.feed_id)} AND {FeedMailRow.gone_at} < ?"
    f" ORDER BY {FeedMailRow.folder}, {FeedMailRow.uid} LIMIT ?"
)
_FORGET = delete(FeedMailRow, FeedMailRow.feed_id, FeedMailRow.folder, FeedMailRow.uid)


def _among(column: object, count: int, *, with_records: bool = True) -> str:
    only = f" AND {FeedMailRow.record_key} <> ''" if with_records else ""
    return (
        f"SELECT {listed(FeedMailRow.table.columns)} FROM {FeedMailRow.table}"  # noqa: S608
        f" WHERE {SUBJECT} = ? AND {FeedMailRow.feed_id} = ?"
        f" AND {column} IN ({', '.join('?' * count)}){only}"
        f" ORDER BY {FeedMailRow.folder}, {FeedMailRow.uid}"
    )


class SqlFeedMails:
    """The mails of one subject's feeds in one database."""

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self._subject_id = subject_id

    def mails_of(self, feed_id: str, folder: str, above: int, limit: int) -> list[FeedMailRow]:
        """Those of a folder above a UID, by UID; also those that are gone."""
        return self._rows(_OF_FOLDER, (feed_id, folder, above, limit))

    def mail_counts(self, feed_id: str) -> dict[str, int]:
        """How many are there in each folder, without those that are gone."""
        with self._database.read() as session:
            lines = session.rows(_COUNTS, (self._subject_id, feed_id))
            return {str(folder): int(str(count)) for folder, count in lines}

    def mail_count(self, feed_id: str, folder: str) -> int:
        """How many are there in a folder, without those that are gone."""
        with self._database.read() as session:
            return int(str(session.value(_COUNT, (self._subject_id, feed_id, folder))))

    def gone_count(self, feed_id: str, before: int) -> int:
        """How many were found gone in a look before that one."""
        with self._database.read() as session:
            return int(str(session.value(_GONE_COUNT, (self._subject_id, feed_id, before))))

    def mails_at(self, feed_id: str, folder: str, uids: Sequence[int]) -> list[FeedMailRow]:
        """Those of a folder with these UIDs."""
        found: list[FeedMailRow] = []
        for begin in range(0, len(uids), ASKED_AT_ONCE):
            part = uids[begin : begin + ASKED_AT_ONCE]
            wanted = ", ".join("?" * len(part))
            statement = f"{_AT} AND {FeedMailRow.uid} IN ({wanted})"
            found += self._rows(statement, (feed_id, folder, *part))
        return found

    def copies(self, feed_id: str, copies: Sequence[str]) -> list[FeedMailRow]:
        """Those that are copies of one of these mails and became a record."""
        return self._among(FeedMailRow.copy_of, feed_id, copies)

    def rows_of_copies(self, feed_id: str, copies: Sequence[str]) -> list[FeedMailRow]:
        """All that are copies of one of these mails, also those that became no record."""
        return self._among(FeedMailRow.copy_of, feed_id, copies, with_records=False)

    def mails_by_key(self, feed_id: str, keys: Sequence[str]) -> list[FeedMailRow]:
        """Those that are one of these records, by folder."""
        return self._among(FeedMailRow.record_key, feed_id, keys)

    def gone_mails(self, feed_id: str, before: int, limit: int) -> list[FeedMailRow]:
        """Those that were found gone in a look before that one."""
        return self._rows(_GONE, (feed_id, before, limit))

    def keep_mails(
        self,
        feed_id: str,
        mails: Iterable[FeedMailRow],
        forgotten: Iterable[tuple[str, int]] = (),
    ) -> None:
        """Nothing is kept of a feed that was removed meanwhile, or whose account was erased."""
        subject = self._subject_id
        with self._database.few_pages(), self._database.write() as session:
            if not takes_lines(session, subject, feed_id):
                return
            session.many(_FORGET, [(subject, feed_id, *each) for each in forgotten])
            ordered = sorted(mails, key=lambda each: each.copy_of)  # as an index has them
            session.many(replacing(FeedMailRow), [(subject, *values_of(each)) for each in ordered])
        self._database.let_read_pages_go()

    def _among(
        self, column: object, feed_id: str, values: Sequence[str], *, with_records: bool = True
    ) -> list[FeedMailRow]:
        found: list[FeedMailRow] = []
        known = sorted({each for each in values if each})
        for begin in range(0, len(known), ASKED_AT_ONCE):
            part = known[begin : begin + ASKED_AT_ONCE]
            statement = _among(column, len(part), with_records=with_records)
            found += self._rows(statement, (feed_id, *part))
            self._database.let_read_pages_go()  # each lies on a page of its own
        return found

    def _rows(self, statement: str, values: Sequence[str | int]) -> list[FeedMailRow]:
        with self._database.read() as session:
            lines = session.rows(statement, (self._subject_id, *values))
        return [row_from(FeedMailRow, each) for each in lines]
