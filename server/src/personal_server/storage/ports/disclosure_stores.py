"""What the read log asks of a store: lines that are added, listed and counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from personal_server.domain.disclosure import AskedDetail, DisclosureEntry


class DisclosureQuery(msgspec.Struct, frozen=True):
    """Which entries: equal members, a time span, and below a number.

    Shapes: `equal` holds (member of `DisclosureEntry`, value); `below` is an entry number.
    Units:  UTC nanoseconds; since inclusive, until exclusive.
    """

    limit: int
    equal: tuple[tuple[str, str], ...] = ()
    since_ns: int | None = None
    until_ns: int | None = None
    below: int | None = None


ShareOf = Literal["day", "client_id", "stream"]
"""What is counted by: the day in UTC (from 1970), who read, what of."""


class DisclosedShare(msgspec.Struct, frozen=True):
    """What one of them was given: records, in how many answers.

    Shapes: `name` is empty for the owner's tokens, and for answers that name no stream.
    """

    name: str
    record_count: int
    answer_count: int


class DisclosureStore(Protocol):
    """The disclosure log of one subject.

    Rule: it is appended to, read, and forgotten by age; no method changes or deletes one entry.
    """

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        """Write entries, in order, in one transaction.  Raises StorageUnavailable."""
        ...

    def disclosures(self, query: DisclosureQuery) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries with their numbers, newest first."""
        ...

    def disclosed_since(self, grant_id: str, since_ns: int) -> tuple[int, int]:
        """Records and bytes served for a grant since an instant."""
        ...

    def shares(self, of: ShareOf, query: DisclosureQuery) -> tuple[DisclosedShare, ...]:
        """What was served, summed by one member, the most answers first.

        Of the whole UTC days that the query touches; `equal` is about `client_id` and `stream`.
        """
        ...

    def asked_details(self, numbers: Sequence[int]) -> Mapping[int, AskedDetail]:
        """What lies beside entries, by their numbers, as long as it is kept."""
        ...

    def disclosures_of(
        self, connection_id: str, stream: str, key: str, looked_at: int
    ) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries by which a record was handed out, newest first, of as many as are looked at.

        Those of its stream beside which keys lie are looked at, the newest first.
        """
        ...

    def forget_details(self, before_ns: int) -> None:
        """Remove what lies beside entries older than the time it is kept; the lines stay."""
        ...

    def forget_disclosures(self, before_ns: int) -> None:
        """Remove entries older than the time they are kept."""
        ...
