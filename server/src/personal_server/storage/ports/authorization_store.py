"""Transactions over the rows of the authorization store, and the lists of it that people read.

Rule: the store adds the subject to every key and condition; rows do not carry it.  A decision and
everything it writes are one `write` transaction; who won a race is told by the number that a
conditional `change` returns, nothing is read first and decided later outside it.  Lists are of the
newest first, a page at a time.
Source: docs/contract/authorization-server.md 18.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

import msgspec

from personal_server.storage.authorization_rows import AuthorizationRow, ClientRow
from personal_server.storage.tables import Assignment, ColumnCondition, StoredColumn

R = TypeVar("R", bound=AuthorizationRow)


class ListPlace(msgspec.Struct, frozen=True):
    """A place in a list of the newest first: an instant and, among equals, an id."""

    at_ns: int
    id: str


class HeldQuery(msgspec.Struct, frozen=True):
    """Which grants and packages; a member grant stands in its package only.

    `lasts`: those of which something has not ended at `now_ns`, or has (`None`: all).
    """

    now_ns: int
    lasts: bool | None = None
    client_id: str | None = None


class ClientQuery(msgspec.Struct, frozen=True):
    """Which clients: `known` ones were given something, act as the owner or are blocked.

    The others are those that only asked; a client set up on this server asks nothing by itself.
    """

    now_ns: int
    known: bool


class AuthorizationReader(Protocol):
    """One consistent view of the rows of one subject."""

    @property
    def derived(self) -> MutableMapping[object, Any]:
        """What was made of this state before; another state has none of it."""
        ...

    def get(self, table: type[R], *where: ColumnCondition[R]) -> R | None:
        """The only row that meets the conditions, or `None`."""
        ...

    def rows(
        self,
        table: type[R],
        *where: ColumnCondition[R],
        order: StoredColumn[R, Any] | None = None,
        descending: bool = False,
        limit: int | None = None,
    ) -> list[R]:
        """The rows that meet the conditions, by `order` (else by key)."""
        ...

    def count(self, table: type[R], *where: ColumnCondition[R]) -> int:
        """How many rows meet the conditions."""
        ...

    def held(
        self, query: HeldQuery, limit: int | None = None, below: ListPlace | None = None
    ) -> list[str]:
        """Ids of grants and packages, newest first, after a place in the list."""
        ...

    def count_held(self, query: HeldQuery) -> int:
        """How many grants and packages."""
        ...

    def clients(
        self, query: ClientQuery, limit: int | None = None, below: ListPlace | None = None
    ) -> list[ClientRow]:
        """Clients, the latest registered first, after a place (by `client_ref`)."""
        ...

    def count_clients(self, query: ClientQuery) -> int:
        """The number of clients that the query matches."""
        ...


class AuthorizationWriter(AuthorizationReader, Protocol):
    """A transaction: all of it or nothing, alone while it lasts."""

    def insert(self, row: AuthorizationRow) -> None:
        """Add a row; a duplicate key is a defect and raises."""
        ...

    def change(
        self, table: type[R], to: Sequence[Assignment[R]], *where: ColumnCondition[R]
    ) -> int:
        """Set columns of the rows that meet the conditions; how many there were."""
        ...

    def delete(self, table: type[R], *where: ColumnCondition[R]) -> int:
        """Remove the rows that meet the conditions; how many there were."""
        ...


class AuthorizationStore(Protocol):
    """Transactions over the rows of one subject."""

    @property
    def subject_id(self) -> str:
        """The owner of this deployment."""
        ...

    def read(self) -> AbstractContextManager[AuthorizationReader]:
        """A view of one moment: nothing that is written meanwhile shows in it."""
        ...

    def write(self) -> AbstractContextManager[AuthorizationWriter]:
        """A transaction that ends with the block: committed, or undone by an exception."""
        ...

    def forget_audit(self, before_ns: int) -> None:
        """Remove events older than the time they are kept, in short transactions."""
        ...
