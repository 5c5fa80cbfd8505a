"""The port to the disclosure log: appended to, read, and forgotten by age; never changed.

Rule: no method changes or deletes a single entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from personal_server.domain.disclosure import DisclosureEntry


@dataclass(frozen=True, slots=True)
class DisclosureQuery:
    """Which entries: equal members, a time span, and below a number.

    Shapes: `equal` holds (member of `DisclosureEntry`, value); `below` is an entry number.
    Units:  UTC nanoseconds; since inclusive, until exclusive.
    """

    limit: int
    equal: tuple[tuple[str, str], ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None
    below: int | None = None


class DisclosureStore(Protocol):
    """The disclosure log of one subject."""

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        """Write entries, in order, in one transaction.  Raises StorageUnavailable."""
        ...

    def disclosures(self, query: DisclosureQuery) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries with their numbers, newest first."""
        ...

    def disclosed_since(self, grant_id: str, since_ns: int) -> tuple[int, int]:
        """Records and bytes served for a grant since an instant."""
        ...

    def forget_disclosures(self, before_ns: int) -> None:
        """Remove entries older than the time they are kept."""
        ...
