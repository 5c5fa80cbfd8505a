"""A log as a chain: its lines get numbers and links, and its oldest lines go behind a head.

Rule: a line gets both in the transaction that writes it; forgetting removes the oldest lines only,
and a head says where they ended.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Generic, TypeVar

import msgspec

from personal_server.domain.log_chain import GENESIS, LogHead, LogLine, link_of
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.statements import (
    SUBJECT,
    delete,
    ignoring,
    insert,
    row_from,
    select,
    values_of,
)
from personal_server.storage.tables import Cell, StoredColumn, StoredRow, column

R = TypeVar("R", bound=StoredRow)
SLICE_LINES = 5_000
PAUSE_SECONDS = 0.02


class LogHeadRow(StoredRow, table="log_heads"):
    """Where a log stood, or was cut; without a signature until the server gives one."""

    by_subject = True
    log: Cell[str] = column(key=True)
    number: Cell[int] = column(key=True)
    link: Cell[bytes]
    at_ns: Cell[int]
    is_cut: Cell[bool]
    signature: Cell[bytes | None] = column(default=None)


_HEADS = f"{select(LogHeadRow, LogHeadRow.log)} ORDER BY {LogHeadRow.number}"
_SIGN = (
    f"UPDATE {LogHeadRow.table} SET {LogHeadRow.signature} = ?"  # noqa: S608
    f" WHERE {SUBJECT} = ? AND {LogHeadRow.log} = ? AND {LogHeadRow.number} = ?"
)


class ChainedLog(msgspec.Struct, Generic[R], frozen=True):
    """One such table: its rows, and the columns of number, link and time."""

    rows: type[R]
    number: StoredColumn[R, int]
    link: StoredColumn[R, bytes | None]
    at_ns: StoredColumn[R, int]

    @property
    def name(self) -> str:
        """What heads call it."""
        return str(self.rows.table)

    def append(self, session: Session, subject_id: str, rows: Sequence[R]) -> None:
        """Number, link and write rows, in this order."""
        number, previous = self.tail(session, subject_id)
        names = self.rows.table.names
        number_at, link_at = names.index(self.number.name), names.index(self.link.name)
        lines: list[list[Value]] = []
        for row in rows:
            values = values_of(row)
            number += 1
            values[number_at] = number
            previous = link_of(previous, self._members(values))
            values[link_at] = previous
            lines.append([subject_id, *values])
        session.many(insert(self.rows), lines)

    def tail(self, session: Session, subject_id: str) -> tuple[int, bytes]:
        """Number and link of the newest line, also where all were forgotten."""
        last = session.first(
            f"SELECT {self.number}, {self.link} FROM {self.rows.table}"  # noqa: S608
            f" WHERE {SUBJECT} = ? ORDER BY {self.number} DESC LIMIT 1",
            (subject_id,),
        )
        if last is None:
            heads = self.heads(session, subject_id)
            return (heads[-1].number, heads[-1].link) if heads else (0, GENESIS)
        return last[0], last[1] or GENESIS

    def forget(self, database: Database, subject_id: str, before_ns: int) -> None:
        """Remove the oldest lines, up to the first that is not older than this.

        In slices, each a short transaction, with room for other writers between them.
        """
        while self._forget_slice(database, subject_id, before_ns):
            time.sleep(PAUSE_SECONDS)

    def _forget_slice(self, database: Database, subject_id: str, before_ns: int) -> bool:
        """Remove some of them; whether there may be more."""
        oldest = select(self.rows, columns=(self.number, self.link, self.at_ns))
        with database.write() as session:
            lines = session.rows(
                f"{oldest} ORDER BY {self.number} LIMIT ?", (subject_id, SLICE_LINES)
            )
            over = list(takewhile(lambda line: line[2] < before_ns, lines))
            if not over:
                return False
            number, link, at_ns = over[-1]
            session.run(f"{delete(self.rows)} AND {self.number} <= ?", (subject_id, number))
            session.run(
                f"{delete(LogHeadRow, LogHeadRow.log)} AND {LogHeadRow.number} <= ?",
                (subject_id, self.name, number),
            )
            if link is not None:
                row = LogHeadRow(log=self.name, number=number, link=link, at_ns=at_ns, is_cut=True)
                self.put_head(session, subject_id, row)
        return len(over) == SLICE_LINES

    def lines(self, session: Session, subject_id: str) -> Iterator[LogLine]:
        """All lines, oldest first."""
        names = self.rows.table.names
        number, link = names.index(self.number.name), names.index(self.link.name)
        sql = f"{select(self.rows)} ORDER BY {self.number}"
        for values in session.run(sql, (subject_id,)):
            yield LogLine(values[number], values[link], self._members(values))

    def heads(self, session: Session, subject_id: str) -> list[LogHead]:
        """Its heads, oldest first."""
        rows = [
            row_from(LogHeadRow, line) for line in session.rows(_HEADS, (subject_id, self.name))
        ]
        return [LogHead(r.log, r.number, r.link, r.at_ns, r.is_cut, r.signature) for r in rows]

    def put_head(self, session: Session, subject_id: str, row: LogHeadRow) -> None:
        """Note where the log stands, once."""
        session.run(ignoring(insert(LogHeadRow)), [subject_id, *values_of(row)])

    def sign(self, session: Session, subject_id: str, number: int, signature: bytes) -> None:
        """Sign a head."""
        session.run(_SIGN, (signature, subject_id, self.name, number))

    def _members(self, values: Sequence[Any]) -> dict[str, object]:
        members = dict(zip(self.rows.table.names, values, strict=True))
        del members[self.link.name]
        return members
