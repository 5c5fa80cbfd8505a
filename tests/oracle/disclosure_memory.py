"""The disclosure log in memory: the meaning of the port."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.disclosure import SERVED, AskedDetail, DisclosureEntry
from personal_server.storage.ports.disclosure_stores import (
    DisclosedShare,
    DisclosureQuery,
    ShareOf,
)


class MemoryDisclosures:
    """Entries in the order they came."""

    def __init__(self) -> None:
        self._entries: list[tuple[int, DisclosureEntry]] = []
        self._details: dict[int, tuple[int, AskedDetail]] = {}
        self._number = 0
        self._lock = threading.Lock()

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        """Write entries, in order."""
        with self._lock:
            for entry in entries:
                self._number += 1
                self._entries.append((self._number, replace(entry, detail=None)))
                if entry.detail is not None:
                    self._details[self._number] = (entry.at_ns, entry.detail)

    def disclosures(self, query: DisclosureQuery) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries with their numbers, newest first."""
        with self._lock:
            found = [item for item in reversed(self._entries) if _matches(query, *item)]
        return tuple(found[: query.limit])

    def disclosed_since(self, grant_id: str, since_ns: int) -> tuple[int, int]:
        """Records and bytes served for a grant since an instant."""
        with self._lock:
            served = [
                entry
                for _, entry in self._entries
                if entry.grant_id == grant_id
                and entry.outcome == SERVED
                and entry.at_ns >= since_ns
            ]
        return sum(e.record_count for e in served), sum(e.size_bytes for e in served)

    def shares(self, of: ShareOf, query: DisclosureQuery) -> tuple[DisclosedShare, ...]:
        """What was served, summed by one member, the most answers first."""
        records, answers = Counter[str | int](), Counter[str | int]()
        since = (query.since_ns or 0) // DAY_NANOSECONDS
        until = query.until_ns and -(-query.until_ns // DAY_NANOSECONDS)
        with self._lock:
            for _, entry in self._entries:
                day = entry.at_ns // DAY_NANOSECONDS
                is_in = since <= day and (until is None or day < until)
                is_meant = all(getattr(entry, member) == value for member, value in query.equal)
                if entry.outcome == SERVED and is_in and is_meant:
                    name = day if of == "day" else getattr(entry, of) or ""
                    records[name] += entry.record_count
                    answers[name] += 1
        most = sorted(answers, key=lambda name: (-answers[name], name))[: query.limit]
        return tuple(DisclosedShare(str(each), records[each], answers[each]) for each in most)

    def asked_details(self, numbers: Sequence[int]) -> Mapping[int, AskedDetail]:
        """What lies beside entries."""
        with self._lock:
            return {n: self._details[n][1] for n in numbers if n in self._details}

    def disclosures_of(
        self, connection_id: str, stream: str, key: str, looked_at: int
    ) -> tuple[tuple[int, DisclosureEntry], ...]:
        """Entries by which a record was handed out."""
        with self._lock:
            found = [
                (number, entry)
                for number, entry in reversed(self._entries)
                if number in self._details
                and (entry.connection_id, entry.stream) == (connection_id, stream)
            ]
            given = [each for each in found[:looked_at] if key in self._details[each[0]][1].keys]
        return tuple(given)

    def forget_details(self, before_ns: int) -> None:
        """Remove what lies beside older entries."""
        with self._lock:
            self._details = {n: d for n, d in self._details.items() if d[0] >= before_ns}

    def forget_disclosures(self, before_ns: int) -> None:
        """Remove entries older than the time they are kept."""
        with self._lock:
            self._entries = [item for item in self._entries if item[1].at_ns >= before_ns]


def _matches(query: DisclosureQuery, number: int, entry: DisclosureEntry) -> bool:
    return (
        (query.below is None or number < query.below)
        and (query.since_ns is None or entry.at_ns >= query.since_ns)
        and (query.until_ns is None or entry.at_ns < query.until_ns)
        and all(getattr(entry, member) == value for member, value in query.equal)
    )
