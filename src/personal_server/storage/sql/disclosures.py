"""The disclosure log: one table that is only appended to, and forgotten by age."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.domain.values import DAY_NANOSECONDS
from personal_server.storage.ports import DisclosureQuery
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.log_chain import ChainedLog
from personal_server.storage.sql.statements import SUBJECT, delete, insert, row_from, select
from personal_server.storage.tables import Cell, StoredRow, column


class DisclosureRow(StoredRow, table="disclosures"):
    """An entry of the log with its number."""

    by_subject = True
    number: Cell[int] = column(key=True)
    disclosure_id: Cell[str]
    at_ns: Cell[int]
    request_id: Cell[str]
    outcome: Cell[str]
    error_code: Cell[str | None]
    token_kind: Cell[str]
    client_id: Cell[str | None]
    grant_id: Cell[str | None]
    package_id: Cell[str | None]
    channel: Cell[str]
    tool: Cell[str | None]
    route: Cell[str]
    connector_key: Cell[str | None]
    connection_id: Cell[str | None]
    stream: Cell[str | None]
    fields: Cell[tuple[str, ...]]
    record_count: Cell[int]
    size_bytes: Cell[int]
    link: Cell[bytes | None] = column(default=None)


class DisclosureDayRow(StoredRow, table="disclosure_days"):
    """How many records were served on a UTC day, counted from 1970."""

    by_subject = True
    day: Cell[int] = column(key=True)
    record_count: Cell[int]


RECORDS = DisclosureRow.record_count
_ENTRY = DisclosureRow.table.names[1:-1]
DISCLOSURES = ChainedLog(
    DisclosureRow, DisclosureRow.number, DisclosureRow.link, DisclosureRow.at_ns
)


class SqlDisclosures:
    """The log of one subject in an open file."""

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self._subject_id = subject_id

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        """Write entries, in order, in one transaction."""
        with self._database.write() as session:
            DISCLOSURES.append(session, self._subject_id, [_row(each) for each in entries])
            session.many(
                f"{insert(DisclosureDayRow)} ON CONFLICT DO UPDATE"
                f" SET {RECORDS} = {RECORDS} + excluded.{RECORDS}",
                [[self._subject_id, *each] for each in _served_by_day(entries).items()],
            )

    def disclosures(self, query: DisclosureQuery) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries with their numbers, newest first."""
        conditions, values = _conditions(query)
        sql = f"{select(DisclosureRow)}{conditions} ORDER BY {DisclosureRow.number} DESC LIMIT ?"
        with self._database.read() as session:
            lines = session.rows(sql, [self._subject_id, *values, query.limit])
        rows = [row_from(DisclosureRow, line) for line in lines]
        return tuple((row.number, _entry(self._subject_id, row)) for row in rows)

    def disclosed_since(self, grant_id: str, since_ns: int) -> tuple[int, int]:
        """Records and bytes served for a grant since an instant."""
        sql = (
            f"SELECT coalesce(sum({DisclosureRow.record_count}), 0),"  # noqa: S608
            f" coalesce(sum({DisclosureRow.size_bytes}), 0) FROM {DisclosureRow.table}"
            f" WHERE {SUBJECT} = ? AND {DisclosureRow.grant_id} = ?"
            f" AND {DisclosureRow.at_ns} >= ? AND {DisclosureRow.outcome} = ?"
        )
        with self._database.read() as session:
            line = session.first(sql, [self._subject_id, grant_id, since_ns, SERVED])
        return (0, 0) if line is None else (line[0], line[1])

    def served_by_day(self, since_ns: int) -> Mapping[int, int]:
        """Records served on each UTC day from that of an instant on."""
        sql = f"{select(DisclosureDayRow)} AND {DisclosureDayRow.day} >= ?"
        with self._database.read() as session:
            lines = session.rows(sql, [self._subject_id, since_ns // DAY_NANOSECONDS])
        rows = [row_from(DisclosureDayRow, line) for line in lines]
        return {row.day: row.record_count for row in rows}

    def forget_disclosures(self, before_ns: int) -> None:
        """Remove entries older than the time they are kept."""
        DISCLOSURES.forget(self._database, self._subject_id, before_ns)
        with self._database.write() as session:
            session.run(
                f"{delete(DisclosureDayRow)} AND {DisclosureDayRow.day} < ?",
                [self._subject_id, before_ns // DAY_NANOSECONDS],
            )


def _served_by_day(entries: Sequence[DisclosureEntry]) -> Counter[int]:
    days = Counter[int]()
    for entry in entries:
        if entry.outcome == SERVED:
            days[entry.at_ns // DAY_NANOSECONDS] += entry.record_count
    return days


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


def _row(entry: DisclosureEntry) -> DisclosureRow:
    members: dict[str, Any] = {name: getattr(entry, name) for name in _ENTRY}
    return DisclosureRow(number=0, **members)


def _entry(subject_id: str, row: DisclosureRow) -> DisclosureEntry:
    members: dict[str, Any] = {name: getattr(row, name) for name in _ENTRY}
    return DisclosureEntry(subject_id=subject_id, **members)
