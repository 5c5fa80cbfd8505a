"""Keyed values and counts in the memory of this process alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic

from personal_server.domain.keyed_values import KeyedCounts, KeyedValues, V


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
