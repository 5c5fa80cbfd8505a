"""Records as a place holds them, beside those of the accounts that its feed filled.

Rule: it writes nothing.  A record that lies in several items is compared with what the first of
them says, which is what a feed has it say.
Source: docs/contract/feeds.md 7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec

from pdpp_kernel.record import canonical_key
from pdpp_kernel.source_item import SourceRecord
from personal_server.storage.ports.whole_store import RecordStore

COMPARED_AT_ONCE = 500
THREAD = "thread_id"
"""Tells to which records one belongs, and so nothing of its own."""


class ComparedItem(msgspec.Struct):
    """How many records an item has, and how many of them the accounts lack or hold otherwise."""

    records: int = 0
    missing: int = 0
    differing: int = 0


@dataclass(frozen=True, slots=True)
class RecordComparison:
    """Compares the records of items with those of accounts.

    Shapes: `accounts` by their source.
    """

    store: RecordStore
    accounts: Mapping[str, Sequence[str]]
    _seen: set[int] = field(default_factory=set[int], init=False)

    @classmethod
    def of(cls, store: RecordStore, connection_ids: Sequence[str]) -> RecordComparison:
        """Over these accounts."""
        accounts: dict[str, list[str]] = defaultdict(list)
        with store.snapshot() as snapshot:
            for each in snapshot.connections():
                if each.connection_id in connection_ids:
                    accounts[each.connector_key].append(each.connection_id)
        return cls(store, accounts)

    def look_for(self, records: Iterable[tuple[str, SourceRecord]]) -> ComparedItem:
        """Whether they are there, whatever they say: exports of several days say different."""
        compared = ComparedItem()
        for source, stream, part in _parts(records, compared):
            compared.missing += len(part.keys() - self._held(source, stream, part).keys())
        return compared

    def compare(self, records: Iterable[tuple[str, SourceRecord]]) -> ComparedItem:
        """Whether they are there, and say what their first item says."""
        compared = ComparedItem()
        for source, stream, part in _parts(records, compared):
            stored = self._held(source, stream, part)
            compared.missing += len(part.keys() - stored.keys())
            for key in part.keys() & stored.keys():
                mark = hash((source, stream, key))
                if mark not in self._seen:
                    compared.differing += _differs(part[key], stored[key])
            self._seen.update(hash((source, stream, key)) for key in part)
        return compared

    def streams(self) -> list[tuple[str, str]]:
        """Those that the accounts hold, each with its source."""
        with self.store.snapshot() as snapshot:
            stored = [(each.connection_id, each.stream) for each in snapshot.stored_streams()]
        return sorted(
            {
                (source, stream)
                for source, accounts in self.accounts.items()
                for account, stream in stored
                if account in accounts
            }
        )

    def beside(self, source: str, stream: str) -> Iterator[list[str]]:
        """The keys of records of a stream that were compared with nothing."""
        for _, keys in self.beside_in(source, stream):
            yield keys

    def beside_in(self, source: str, stream: str) -> Iterator[tuple[str, list[str]]]:
        """The same, with the account of each."""
        for account in self.accounts.get(source, ()):
            with self.store.snapshot(None) as snapshot:
                keys = (
                    stored.key
                    for stored in snapshot.export(account, stream)
                    if hash((source, stream, stored.key)) not in self._seen
                )
                while part := list(islice(keys, COMPARED_AT_ONCE)):
                    yield account, part

    def _held(
        self, source: str, stream: str, part: Mapping[str, SourceRecord]
    ) -> dict[str, Mapping[str, object]]:
        """What the accounts hold of them."""
        return {
            record.key: record.data
            for account in self.accounts.get(source, ())
            for record in self.store.records_named(account, stream, list(part))
        }


def _parts(
    records: Iterable[tuple[str, SourceRecord]], compared: ComparedItem
) -> Iterator[tuple[str, str, Mapping[str, SourceRecord]]]:
    """Some of a source and stream at a time, by key; all of them are counted."""
    waiting: dict[tuple[str, str], dict[str, SourceRecord]] = defaultdict(dict)
    for source, record in records:
        compared.records += 1
        part = waiting[source, record.stream]
        part.setdefault(canonical_key([record.data["id"]]), record)
        if len(part) >= COMPARED_AT_ONCE:
            yield source, record.stream, part
            part.clear()
    for (source, stream), part in waiting.items():
        yield source, stream, part


def _differs(record: SourceRecord, stored: Mapping[str, object]) -> bool:
    return any(
        stored.get(name) != value
        for name, value in record.data.items()
        if name != THREAD or record.thread is None
    )
