"""Values that are kept by key, so many of them: what limits count, and what was used once.

Rule: whoever reads a value in order to write one holds `lock` meanwhile.  A `ValueSpace` says where
they lie: in this process, or where every process that serves the same owner sees them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import AbstractContextManager
from typing import Generic, Protocol, TypeVar

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
        """Of all processes."""
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


class OwnValues(Generic[V]):
    """Values of one process."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, V] = OrderedDict()
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> V | None:
        """As `KeyedValues` has it; so are the others."""
        return self._kept.get(key)

    def displaced_by(self, key: Hashable) -> V | None:
        """Only where there is no room for one more."""
        with self.lock:
            if key in self._kept or len(self._kept) < self._most:
                return None
            return next(iter(self._kept.values()))

    def put(self, key: Hashable, value: V) -> None:
        """The same."""
        with self.lock:
            self._kept[key] = value
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def remove(self, key: Hashable) -> None:
        """The same."""
        with self.lock:
            self._kept.pop(key, None)

    def clear(self) -> None:
        """The same."""
        with self.lock:
            self._kept.clear()


class OwnCounts:
    """Counts of one process."""

    def __init__(self) -> None:
        self._counts: dict[Hashable, int] = {}
        self.lock = threading.RLock()

    def total(self, key: Hashable) -> int:
        """There is no other process."""
        return self._counts.get(key, 0)

    def add(self, key: Hashable, number: int) -> None:
        """A key of which nothing is under way takes no room."""
        with self.lock:
            count = self._counts.get(key, 0) + number
            self._counts[key] = count
            if not count:
                del self._counts[key]


class OwnSpace:
    """Values of one process, seen by nobody else: each asked for anew."""

    def values(self, name: str, kind: type[V], most: int, size_bytes: int) -> KeyedValues[V]:  # noqa: ARG002 (the port's)
        """They are kept as they are, whatever their size."""
        return OwnValues[V](most)

    def counts(self, name: str, most: int) -> KeyedCounts:  # noqa: ARG002 (the port's)
        """The same."""
        return OwnCounts()
