"""What is worked out once of one state of a store, and kept as long as nothing is written."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

Derived = MutableMapping[object, Any]
"""What was made of one state of the store, for whoever reads the same state again."""


T = TypeVar("T")


def once(derived: Derived, key: object, make: Callable[[], T]) -> T:
    """What was made of this state before, else what is made of it now."""
    if key not in derived:
        derived[key] = make()
    return derived[key]
