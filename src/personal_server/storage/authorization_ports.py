"""The port to the authorization store: a transaction over typed rows.

Rule: a decision and everything it writes are one `write` transaction; who won a race is told by
the number that a conditional `change` returns, nothing is read first and decided later outside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from personal_server.storage.authorization_rows import Row

R = TypeVar("R", bound=Row)

Condition = object
"""A plain value means equality (`None`: is null); `Before` and `NotNull` say otherwise."""


@dataclass(frozen=True, slots=True)
class Before:
    """The column is at most this value (null never is)."""

    value: int


@dataclass(frozen=True, slots=True)
class After:
    """The column is greater than this value (null never is)."""

    value: int


@dataclass(frozen=True, slots=True)
class NotNull:
    """The column has a value."""


class AuthorizationReader(Protocol):
    """One consistent view of the rows of one subject."""

    def get(self, table: type[R], **key: Condition) -> R | None:
        """The only row that meets the conditions, or `None`."""
        ...

    def rows(
        self,
        table: type[R],
        *,
        order: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        **where: Condition,
    ) -> list[R]:
        """The rows that meet the conditions, by `order` (else by key)."""
        ...

    def count(self, table: type[Row], **where: Condition) -> int:
        """How many rows meet the conditions."""
        ...


class AuthorizationWriter(AuthorizationReader, Protocol):
    """A transaction: all of it or nothing, alone while it lasts."""

    def insert(self, row: Row) -> None:
        """Add a row; a duplicate key is a defect and raises."""
        ...

    def change(self, table: type[Row], to: Mapping[str, object], **where: Condition) -> int:
        """Set columns of the rows that meet the conditions; how many there were."""
        ...

    def delete(self, table: type[Row], **where: Condition) -> int:
        """Remove the rows that meet the conditions; how many there were."""
        ...


class AuthorizationStore(Protocol):
    """Transactions over the rows of one subject."""

    @property
    def subject_id(self) -> str:
        """The owner of this deployment."""
        ...

    def read(self) -> AbstractContextManager[AuthorizationReader]:
        """A consistent view."""
        ...

    def write(self) -> AbstractContextManager[AuthorizationWriter]:
        """A transaction that ends with the block: committed, or undone by an exception."""
        ...
