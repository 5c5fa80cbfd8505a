"""The disclosure log: one table that is only appended to, and forgotten by age."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.disclosure import SERVED, AskedDetail, DisclosureEntry
from personal_server.storage.ports.disclosure_stores import DisclosedShare, DisclosureQuery, ShareOf
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.logs.disclosure_rows import (
    DisclosureDetailRow,
    DisclosureRow,
    DisclosureShareRow,
)
from personal_server.storage.sql.logs.log_chain import PAUSE_SECONDS, SLICE_LINES, ChainedLog
from personal_server.storage.sql.statements import (
    SUBJECT,
    delete,
    insert,
    row_from,
    select,
    values_of,
)
from personal_server.storage.tables import ColumnKind

_ENTRY = DisclosureRow.table.names[1:-2]
DISCLOSURES = ChainedLog(
    DisclosureRow, DisclosureRow.number, DisclosureRow.link, DisclosureRow.at_ns
)


_SHARE, _ANSWERS = DisclosureShareRow, DisclosureShareRow.answer_count
_RECORDS = DisclosureShareRow.record_count
_COUNT_SHARE = (
    f"{insert(_SHARE)} ON CONFLICT ({', '.join((SUBJECT, *sorted(_SHARE.table.key)))}) DO UPDATE"
    f" SET {_RECORDS} = {_SHARE.table}.{_RECORDS} + excluded.{_RECORDS},"
    f" {_ANSWERS} = {_SHARE.table}.{_ANSWERS} + excluded.{_ANSWERS}"
)
_SHARED_MEMBERS = ("client_id", "stream")
_DETAIL = select(DisclosureDetailRow, DisclosureDetailRow.number)
_BY_NUMBER = select(DisclosureRow, DisclosureRow.number)
_OF_PLACE = select(
    DisclosureDetailRow, DisclosureDetailRow.connection_id, DisclosureDetailRow.stream
)
_NEWEST_OF = f"{_OF_PLACE} ORDER BY {DisclosureDetailRow.number} DESC LIMIT ?"
_AGES = select(DisclosureDetailRow, columns=(DisclosureDetailRow.number, DisclosureDetailRow.at_ns))
_OLDEST_DETAILS = f"{_AGES} ORDER BY {DisclosureDetailRow.number} LIMIT ?"
_FORGET_DETAILS = f"{delete(DisclosureDetailRow)} AND {DisclosureDetailRow.number} <= ?"
_OF_STREAM = (
    f"{delete(DisclosureDetailRow, DisclosureDetailRow.connection_id)}"
    f" AND ?3 IN ({DisclosureDetailRow.stream}, '')"
)


def forget_details_of(
    session: Session, subject_id: str, connection_id: str, stream: str | None, key: str | None
) -> None:
    """Nothing beside the log tells of what was erased: a connection, a stream or one record."""
    row_key = (subject_id, connection_id, stream or "")
    if key is None:
        session.run(_OF_STREAM, row_key)
    else:
        listed = session.dialect.values(DisclosureDetailRow.keys.name, ColumnKind.TEXT)
        session.run(f"{_OF_STREAM} AND ?4 IN {listed}", (*row_key, key))


def kept_commitments(session: Session, subject_id: str) -> Iterator[tuple[int, str]]:
    """The commitments that follow from what lies beside entries, with their numbers."""
    for line in session.run(select(DisclosureDetailRow), (subject_id,)):
        row = row_from(DisclosureDetailRow, line)
        yield row.number, AskedDetail(row.salt, row.asked, row.keys).commitment


class SqlDisclosures(msgspec.Struct, frozen=True):
    """The log of one subject in an open file."""

    database: Database
    subject_id: str
    keeps_details: bool = True

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        """Write entries, in order, in one transaction."""
        with self.database.write() as session:
            first, _ = DISCLOSURES.tail(session, self.subject_id)
            rows = [_row(entry, committed=self.keeps_details) for entry in entries]
            DISCLOSURES.append(session, self.subject_id, rows)
            if self.keeps_details:
                self._keep_details(session, first + 1, entries)
            shares = _shares(entries)
            session.many(_COUNT_SHARE, [[self.subject_id, *values_of(row)] for row in shares])

    def _keep_details(
        self, session: Session, first: int, entries: Sequence[DisclosureEntry]
    ) -> None:
        session.many(
            insert(DisclosureDetailRow),
            [
                [
                    self.subject_id,
                    *values_of(
                        DisclosureDetailRow(
                            number=number,
                            at_ns=entry.at_ns,
                            connection_id=entry.connection_id,
                            stream=entry.stream,
                            salt=entry.detail.salt,
                            asked=entry.detail.asked,
                            keys=entry.detail.keys,
                        )
                    ),
                ]
                for number, entry in enumerate(entries, first)
                if entry.detail is not None
            ],
        )

    def asked_details(self, numbers: Sequence[int]) -> Mapping[int, AskedDetail]:
        """What lies beside entries, by their numbers."""
        details: dict[int, AskedDetail] = {}
        with self.database.read() as session:
            for number in numbers:
                line = session.first(_DETAIL, (self.subject_id, number))
                if line is not None:
                    row = row_from(DisclosureDetailRow, line)
                    details[number] = AskedDetail(row.salt, row.asked, row.keys)
        return details

    def disclosures_of(
        self, connection_id: str, stream: str, key: str, looked_at: int
    ) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries by which a record was handed out, newest first."""
        row_key = (self.subject_id, connection_id, stream, looked_at)
        with self.database.read() as session:
            details = [
                row_from(DisclosureDetailRow, line) for line in session.rows(_NEWEST_OF, row_key)
            ]
            numbers = [detail.number for detail in details if key in detail.keys]
            lines = [session.first(_BY_NUMBER, (self.subject_id, number)) for number in numbers]
        rows = [row_from(DisclosureRow, line) for line in lines if line is not None]
        return tuple((row.number, _entry(self.subject_id, row)) for row in rows)

    def forget_details(self, before_ns: int) -> None:
        """Remove what lies beside older entries, in slices with room for other writers."""
        removed = SLICE_LINES
        while removed == SLICE_LINES:
            with self.database.erase() as session:
                numbers = session.rows(_OLDEST_DETAILS, (self.subject_id, SLICE_LINES))
                over = list(takewhile(lambda line: line[1] < before_ns, numbers))
                removed = len(over)
                if over:
                    session.run(_FORGET_DETAILS, (self.subject_id, over[-1][0]))
            if removed == SLICE_LINES:
                time.sleep(PAUSE_SECONDS)

    def disclosures(self, query: DisclosureQuery) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries with their numbers, newest first."""
        conditions, values = _conditions(query)
        sql = f"{select(DisclosureRow)}{conditions} ORDER BY {DisclosureRow.number} DESC LIMIT ?"
        with self.database.read() as session:
            lines = session.rows(sql, [self.subject_id, *values, query.limit])
        rows = [row_from(DisclosureRow, line) for line in lines]
        return tuple((row.number, _entry(self.subject_id, row)) for row in rows)

    def disclosed_since(self, grant_id: str, since_ns: int) -> tuple[int, int]:
        """Records and bytes served for a grant since an instant."""
        sql = (
            f"SELECT coalesce(sum({DisclosureRow.record_count}), 0),"  # noqa: S608
            f" coalesce(sum({DisclosureRow.size_bytes}), 0) FROM {DisclosureRow.table}"
            f" WHERE {SUBJECT} = ? AND {DisclosureRow.grant_id} = ?"
            f" AND {DisclosureRow.at_ns} >= ? AND {DisclosureRow.outcome} = ?"
        )
        with self.database.read() as session:
            line = session.first(sql, [self.subject_id, grant_id, since_ns, SERVED])
        return (0, 0) if line is None else (line[0], line[1])

    def shares(self, of: ShareOf, query: DisclosureQuery) -> tuple[DisclosedShare, ...]:
        """What was served, summed by one member, the most answers first."""
        conditions, values = _share_conditions(query)
        sql = (
            f"SELECT {of}, sum({_RECORDS}), sum({_ANSWERS}) FROM {_SHARE.table}"  # noqa: S608
            f" WHERE {SUBJECT} = ?{conditions}"
            f" GROUP BY {of} ORDER BY sum({_ANSWERS}) DESC, {of} LIMIT ?"
        )
        with self.database.read() as session:
            lines = session.rows(sql, [self.subject_id, *values, query.limit])
        return tuple(DisclosedShare(str(of), int(r), int(a)) for of, r, a in lines)

    def forget_disclosures(self, before_ns: int) -> None:
        """Remove entries older than the time they are kept."""
        DISCLOSURES.forget(self.database, self.subject_id, before_ns)
        with self.database.write() as session:
            session.run(
                f"{delete(_SHARE)} AND {_SHARE.day} < ?",
                [self.subject_id, before_ns // DAY_NANOSECONDS],
            )


def _shares(entries: Sequence[DisclosureEntry]) -> list[DisclosureShareRow]:
    records, answers = Counter[tuple[int, str, str]](), Counter[tuple[int, str, str]]()
    for entry in entries:
        if entry.outcome == SERVED:
            day_key = (entry.at_ns // DAY_NANOSECONDS, entry.client_id or "", entry.stream or "")
            records[day_key] += entry.record_count
            answers[day_key] += 1
    return [
        DisclosureShareRow(
            day=day_key[0],
            client_id=day_key[1],
            stream=day_key[2],
            record_count=records[day_key],
            answer_count=count,
        )
        for day_key, count in answers.items()
    ]


def _share_conditions(query: DisclosureQuery) -> tuple[str, list[Value]]:
    """Whole days: that of the beginning, up to that in which the end falls."""
    sql, values = "", list[Value]()
    for member, value in query.equal:
        if member not in _SHARED_MEMBERS:
            raise ValueError(f"not counted by: {member}")
        sql += f" AND {member} = ?"
        values.append(value)
    if query.since_ns is not None:
        sql += f" AND {_SHARE.day} >= ?"
        values.append(query.since_ns // DAY_NANOSECONDS)
    if query.until_ns is not None:
        sql += f" AND {_SHARE.day} < ?"
        values.append(-(-query.until_ns // DAY_NANOSECONDS))
    return sql, values


def _conditions(query: DisclosureQuery) -> tuple[str, list[Value]]:
    sql, values = "", list[Value]()
    for member, value in query.equal:
        if member not in _ENTRY:
            raise ValueError(f"no such column: {member}")
        sql += f" AND {member} = ?"
        values.append(value)
    for bounded, sign, bound in (
        (DisclosureRow.at_ns, ">=", query.since_ns),
        (DisclosureRow.at_ns, "<", query.until_ns),
        (DisclosureRow.number, "<", query.below),
    ):
        if bound is not None:
            sql += f" AND {bounded} {sign} ?"
            values.append(bound)
    return sql, values


def _row(entry: DisclosureEntry, *, committed: bool) -> DisclosureRow:
    members: dict[str, Any] = {name: getattr(entry, name) for name in _ENTRY}
    detail = entry.detail if committed else None
    commitment = None if detail is None else detail.commitment
    return DisclosureRow(number=0, commitment=commitment, **members)


def _entry(subject_id: str, row: DisclosureRow) -> DisclosureEntry:
    members: dict[str, Any] = {name: getattr(row, name) for name in _ENTRY}
    return DisclosureEntry(subject_id=subject_id, **members)
