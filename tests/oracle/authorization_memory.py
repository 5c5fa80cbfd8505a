"""The authorization store in memory: what the port means, and a quick store for tests."""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import dropwhile
from typing import Any, cast

from personal_server.storage.authorization_rows import (
    AuditRow,
    AuthorizationRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
)
from personal_server.storage.ports.authorization_store import ClientQuery, HeldQuery, ListPlace, R
from personal_server.storage.tables import Assignment, ColumnCondition, Comparison, StoredColumn

Tables = dict[type[AuthorizationRow], list[AuthorizationRow]]


def meets(row: AuthorizationRow, where: Sequence[ColumnCondition[Any]]) -> bool:
    """Whether a row meets every condition."""
    return all(_holds(getattr(row, each.column.name), each) for each in where)


def _holds(value: Any, condition: ColumnCondition[Any]) -> bool:
    bound: Any = condition.value
    match condition.comparison:
        case Comparison.AT_MOST:
            return value is not None and value <= bound
        case Comparison.ABOVE:
            return value is not None and value > bound
        case Comparison.BELOW:
            return value is not None and value < bound
        case Comparison.EQUALS | Comparison.IS_NULL:
            return value == bound


class MemoryTransaction:
    """Rows in lists; linear, and plain to read."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def derived(self) -> dict[object, Any]:
        """Nothing is remembered."""
        return {}

    def get(self, table: type[R], *where: ColumnCondition[R]) -> R | None:
        """The only row that meets the conditions."""
        found = [row for row in self._of(table) if meets(row, where)]
        if len(found) > 1:
            raise LookupError(f"Several rows of {table.table}.")
        return found[0] if found else None

    def rows(
        self,
        table: type[R],
        *where: ColumnCondition[R],
        order: StoredColumn[R, Any] | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> list[R]:
        """The rows that meet the conditions, in order."""
        by = (order.name,) if order else table.table.key
        found = [row for row in self._of(table) if meets(row, where)]
        found.sort(key=lambda row: [_rank(getattr(row, column)) for column in by])
        if descending:
            found.reverse()
        return found[:limit]

    def count(self, table: type[R], *where: ColumnCondition[R]) -> int:
        """How many rows meet the conditions."""
        return sum(meets(row, where) for row in self._of(table))

    def held(
        self, query: HeldQuery, limit: int | None = None, below: ListPlace | None = None
    ) -> list[str]:
        """Ids of grants and packages, newest first."""
        return [place.id for place in _after(self._held(query), below)[:limit]]

    def count_held(self, query: HeldQuery) -> int:
        """How many grants and packages."""
        return len(self._held(query))

    def clients(
        self, query: ClientQuery, limit: int | None = None, below: ListPlace | None = None
    ) -> list[ClientRow]:
        """Clients, the latest registered first."""
        places = {ListPlace(c.registered_at_ns, c.client_ref): c for c in self._clients(query)}
        return [places[place] for place in _after(list(places), below)[:limit]]

    def count_clients(self, query: ClientQuery) -> int:
        """How many clients."""
        return len(self._clients(query))

    def _held(self, query: HeldQuery) -> list[ListPlace]:
        members = {member.grant_id: member.package_id for member in self._of(PackageMemberRow)}
        lasting = {
            members.get(grant.grant_id, grant.grant_id)
            for grant in self._of(GrantRow)
            if grant.reason is None
            and (grant.expires_at_ns is None or grant.expires_at_ns > query.now_ns)
        }
        alone = [grant for grant in self._of(GrantRow) if grant.grant_id not in members]
        found = [(g.grant_id, g.issued_at_ns, g.client_id, g.reason) for g in alone]
        found += [
            (p.package_id, p.created_at_ns, p.client_id, p.reason) for p in self._of(PackageRow)
        ]
        return [
            ListPlace(at_ns, held_id)
            for held_id, at_ns, client_id, reason in found
            if query.client_id in (None, client_id)
            and query.lasts in (None, reason is None and held_id in lasting)
        ]

    def _clients(self, query: ClientQuery) -> list[ClientRow]:
        owners = {
            family.client_id
            for family in self._of(FamilyRow)
            if family.kind == "owner"
            and family.revoked_at_ns is None
            and query.now_ns < min(family.idle_end_ns, family.absolute_end_ns or family.idle_end_ns)
        }
        known = [
            client
            for client in self._of(ClientRow)
            if client.first_approved_at_ns is not None
            or client.blocked_at_ns is not None
            or client.client_id in owners
        ]
        if query.known:
            return known
        return [
            client
            for client in self._of(ClientRow)
            if client not in known and client.registration != "pre_registered"
        ]

    def insert(self, row: AuthorizationRow) -> None:
        """Add a row, once."""
        rows = self._of(type(row))
        if isinstance(row, AuditRow) and not row.event_id:
            row = replace(row, event_id=len(rows) + 1)
        for columns in (row.table.key, *row.table.unique):
            _refuse_duplicate(rows, row, columns)
        rows.append(row)

    def change(
        self, table: type[R], to: Sequence[Assignment[R]], *where: ColumnCondition[R]
    ) -> int:
        """Set columns where the conditions hold."""
        rows = self._of(table)
        hits = [index for index, row in enumerate(rows) if meets(row, where)]
        for index in hits:
            rows[index] = replace(rows[index], **{each.column.name: each.value for each in to})
        return len(hits)

    def delete(self, table: type[R], *where: ColumnCondition[R]) -> int:
        """Remove the rows that meet the conditions."""
        rows = self._of(table)
        kept = [row for row in rows if not meets(row, where)]
        gone = len(rows) - len(kept)
        rows[:] = kept
        return gone

    def _of(self, table: type[R]) -> list[R]:
        return self._tables.setdefault(table, [])  # pyright: ignore[reportReturnType]


def _rank(value: Any) -> tuple[bool, Any]:
    """Null stands before every value."""
    return value is not None, value


def _after(places: list[ListPlace], below: ListPlace | None) -> list[ListPlace]:
    """Newest first, from a place on."""
    ordered = sorted(places, key=_order, reverse=True)
    return [place for place in ordered if below is None or _order(place) < _order(below)]


def _order(place: ListPlace) -> tuple[int, str]:
    return place.at_ns, place.id


def _refuse_duplicate(
    rows: list[AuthorizationRow], row: AuthorizationRow, columns: tuple[str, ...]
) -> None:
    values = {column: getattr(row, column) for column in columns}
    if None in values.values():
        return
    if any(all(getattr(other, each) == value for each, value in values.items()) for other in rows):
        raise LookupError(f"Duplicate {columns} in {row.table}.")


class MemoryAuthorizationStore:
    """One lock, one dictionary; a failed block leaves nothing behind."""

    def __init__(self, subject_id: str) -> None:
        self.subject_id = subject_id
        self._lock = threading.RLock()
        self._tables: Tables = {}

    @contextmanager
    def read(self) -> Generator[MemoryTransaction]:
        """A consistent view."""
        with self._lock:
            yield MemoryTransaction(self._tables)

    @contextmanager
    def write(self) -> Generator[MemoryTransaction]:
        """A transaction on a draft that replaces the tables when it succeeds."""
        with self._lock:
            draft = {table: list(rows) for table, rows in self._tables.items()}
            yield MemoryTransaction(draft)
            self._tables = draft

    def forget_audit(self, before_ns: int) -> None:
        """Remove the oldest events, up to the first that is not older."""
        with self._lock:
            rows = self._tables.get(AuditRow, [])
            kept = dropwhile(lambda row: cast("AuditRow", row).at_ns < before_ns, rows)
            self._tables = {**self._tables, AuditRow: list(kept)}
