"""Values that are kept by key, so many of them: what limits count, and what was used once.

Rule: whoever reads a value in order to write one holds `lock` meanwhile.  A `ValueSpace` says where
they lie: in this process, or where every process that serves the same owner sees them.
"""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

V = TypeVar("V")


class KeyedValues(Protocol[V]):
    """Values by key; beyond their number the one that was put longest ago gives way."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held by one at a time; whoever holds it may enter again."""
        ...

    def get(self, key: Hashable) -> V | None:
        """The value of a key, if there is one."""
        ...

    def displaced_by(self, key: Hashable) -> V | None:
        """The value that would give way if this key were put now."""
        ...

    def put(self, key: Hashable, value: V) -> None:
        """Keep a value in the place of an older one."""
        ...

    def remove(self, key: Hashable) -> None:
        """Let go of a value, if there is one."""
        ...

    def clear(self) -> None:
        """Let go of all."""
        ...


class KeyedCounts(Protocol):
    """Counts by key of what is under way; those of a process that ends go with it."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """As that of values."""
        ...

    def total(self, key: Hashable) -> int:
        """The counts of all processes together, by name."""
        ...

    def add(self, key: Hashable, number: int) -> None:
        """So many more here."""
        ...


class ValueSpace(Protocol):
    """Where values lie.

    Shapes: a `name` is `group.rest`, and a group has one lock; the same name is the same values.
    """

    def values(self, name: str, kind: type[V], most: int, size_bytes: int) -> KeyedValues[V]:
        """At least `most` values of a kind that msgspec writes in `size_bytes`.

        What takes more than that is not kept.
        """
        ...

    def counts(self, name: str, most: int) -> KeyedCounts:
        """Counts of at least `most` keys."""
        ...
