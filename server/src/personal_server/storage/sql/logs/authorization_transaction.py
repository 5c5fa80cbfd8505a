"""Rows of one subject in one transaction: read, listed, counted, written.

Rule: every statement begins its condition with the subject.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from pdpp_kernel.values import MAX_INTEGER
from personal_server.storage.authorization_rows import AuditRow, AuthorizationRow, ClientRow
from personal_server.storage.ports.authorization_store import ClientQuery, HeldQuery, ListPlace, R
from personal_server.storage.sql.dialect import Value
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.logs.authorization_lists import client_conditions, held_ids
from personal_server.storage.sql.logs.log_chain import ChainedLog
from personal_server.storage.sql.statements import (
    SUBJECT,
    delete,
    insert,
    row_from,
    select,
    stored,
    update,
    values_of,
)
from personal_server.storage.tables import Assignment, ColumnCondition, Comparison, StoredColumn

AUDIT = ChainedLog(AuditRow, AuditRow.event_id, AuditRow.link, AuditRow.at_ns)


class SqlAuthorizationTransaction:
    """Statements over the rows of one subject."""

    def __init__(self, session: Session, subject_id: str) -> None:
        self._session = session
        self._subject_id = subject_id

    @property
    def derived(self) -> MutableMapping[object, Any]:
        """As the session knows whether anything was written."""
        return self._session.derived

    def get(self, table: type[R], *where: ColumnCondition[R]) -> R | None:
        """The only row that meets the conditions."""
        condition, values = self._condition(where)
        lines = self._session.rows(f"{select(table)}{condition} LIMIT 2", values)
        if len(lines) > 1:
            raise LookupError(f"Several rows of {table.table}.")
        return row_from(table, lines[0]) if lines else None

    def rows(
        self,
        table: type[R],
        *where: ColumnCondition[R],
        order: StoredColumn[R, Any] | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> list[R]:
        """The rows that meet the conditions, in order."""
        condition, values = self._condition(where)
        by = (order.name,) if order else table.table.key or (SUBJECT,)
        direction = " DESC" if descending else ""
        ordering = ", ".join(f"{column}{direction}" for column in by)
        sql = f"{select(table)}{condition} ORDER BY {ordering} LIMIT ?"
        lines = self._session.rows(sql, [*values, _limit(limit)])
        return [row_from(table, line) for line in lines]

    def count(self, table: type[R], *where: ColumnCondition[R]) -> int:
        """How many rows meet the conditions."""
        condition, values = self._condition(where)
        sql = f"SELECT count(*) FROM {table.table} WHERE {SUBJECT} = ?{condition}"  # noqa: S608
        return int(self._session.value(sql, values))

    def held(
        self, query: HeldQuery, limit: int | None = None, below: ListPlace | None = None
    ) -> list[str]:
        """Ids of grants and packages, newest first."""
        sql, values = held_ids(self._subject_id, query)
        sql = f"SELECT id FROM ({sql}) AS held"  # noqa: S608
        if below is not None:
            sql += " WHERE (at_ns, id) < (?, ?)"
            values += [below.at_ns, below.id]
        sql += " ORDER BY at_ns DESC, id DESC LIMIT ?"
        return [line[0] for line in self._session.rows(sql, [*values, _limit(limit)])]

    def count_held(self, query: HeldQuery) -> int:
        """How many grants and packages."""
        sql, values = held_ids(self._subject_id, query)
        return int(self._session.value(f"SELECT count(*) FROM ({sql}) AS held", values))  # noqa: S608

    def clients(
        self, query: ClientQuery, limit: int | None = None, below: ListPlace | None = None
    ) -> list[ClientRow]:
        """Clients, the latest registered first."""
        condition, values = client_conditions(self._subject_id, query)
        at_ns, ref = ClientRow.registered_at_ns, ClientRow.client_ref
        if below is not None:
            condition += f" AND ({at_ns}, {ref}) < (?, ?)"
            values += [below.at_ns, below.id]
        ordered = f"ORDER BY {at_ns} DESC, {ref} DESC"
        ids = (  # answered by the index alone, so that only the lines of the page are read
            f"SELECT {ClientRow.client_id} FROM {ClientRow.table}"  # noqa: S608
            f" WHERE {SUBJECT} = ?{condition} {ordered} LIMIT ?"
        )
        lines = self._session.rows(
            f"{select(ClientRow)} AND {ClientRow.client_id} IN ({ids}) {ordered}",
            [self._subject_id, self._subject_id, *values, _limit(limit)],
        )
        return [row_from(ClientRow, line) for line in lines]

    def count_clients(self, query: ClientQuery) -> int:
        """The number of clients that the query matches."""
        condition, values = client_conditions(self._subject_id, query)
        sql = f"SELECT count(*) FROM {ClientRow.table} WHERE {SUBJECT} = ?{condition}"  # noqa: S608
        return int(self._session.value(sql, [self._subject_id, *values]))

    def insert(self, row: AuthorizationRow) -> None:
        """Add a row, once."""
        if isinstance(row, AuditRow):
            AUDIT.append(self._session, self._subject_id, [row])
        else:
            self._session.run(insert(type(row)), [self._subject_id, *values_of(row)])

    def change(
        self, table: type[R], to: Sequence[Assignment[R]], *where: ColumnCondition[R]
    ) -> int:
        """Set columns where the conditions hold."""
        condition, values = self._condition(where)
        sql = f"{update(table, [change.column for change in to])}{condition}"
        self._session.run(sql, [*(stored(change.column, change.value) for change in to), *values])
        return self._session.changed

    def delete(self, table: type[R], *where: ColumnCondition[R]) -> int:
        """Remove the rows that meet the conditions."""
        condition, values = self._condition(where)
        self._session.run(f"{delete(table)}{condition}", values)
        return self._session.changed

    def _condition(self, where: Sequence[ColumnCondition[Any]]) -> tuple[str, list[Value]]:
        """What follows the condition on the subject, with all values."""
        sql, values = "", list[Value]([self._subject_id])
        for condition in where:
            if condition.comparison is Comparison.IS_NULL:
                sql += f" AND {condition.column.name} {condition.comparison}"
            else:
                sql += f" AND {condition.column.name} {condition.comparison} ?"
                values.append(stored(condition.column, condition.value))
        return sql, values


def _limit(limit: int | None) -> int:
    """As SQL takes it."""
    return MAX_INTEGER if limit is None else limit
