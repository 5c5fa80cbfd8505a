"""Records of items of calendars and address books that were changed or deleted in their account.

Rule: an event that was moved leaves no time behind at which it does not take place; a record is
deleted only where the owner has deletions followed, no item holds it, and two looks found it gone.
Source: docs/contract/feeds.md 12.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from pdpp_kernel.record import StoredRecord, canonical_key
from pdpp_kernel.source_item import Skipped, SourceRecord
from pdpp_kernel.values import NANOSECONDS
from pdpp_sources.common.errors import BadRecord, ExportError, ExportNotRecognized
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess, Wanted
from personal_server.app.fed_records import FedRecords

AT_ONCE = 200
EVENTS, SLOTS, EVENT_OF = "events", "agenda", "event_id"
# The reader spells repeating events out from 20 years before on: an earlier time is not compared.
COMPARED_DAYS = timedelta(days=19 * 365)
# Of an event that repeats more often, the reader gives only so many times.
MOST_SLOTS = 20_000
CUT = "agenda_cut"


class ItemRecords(msgspec.Struct):
    """What an item was read as.

    Shapes: `keys` are `STREAM/KEY`; `slots` are the keys of the times of each event, by its key;
        `is_whole` where nothing of the item was passed over.
    """

    keys: list[str] = msgspec.field(default_factory=list[str])
    slots: dict[str, set[str]] = msgspec.field(default_factory=dict[str, set[str]])
    repeating: set[str] = msgspec.field(default_factory=set[str])
    is_whole: bool = True

    def note(self, item: SourceRecord | Skipped) -> None:
        """Take one thing that the reader says of it."""
        if isinstance(item, Skipped):
            self.is_whole &= item.code == CUT
            return
        key = canonical_key([item.data["id"]])
        if item.stream == SLOTS:
            self.slots.setdefault(canonical_key([item.data[EVENT_OF]]), set()).add(key)
            return
        self.keys.append(f"{item.stream}/{key}")
        if item.stream == EVENTS:
            self.slots.setdefault(key, set())
            if item.data.get("is_recurring"):
                self.repeating.add(key)


def read_items(
    folder: Path,
    starts: Sequence[tuple[int, str]],
    source: str,
    open_reader: Callable[[CostlyPlaces], ReaderProcess] = ReaderProcess,
) -> dict[str, ItemRecords]:
    """What the confined reader of a source makes of a folder of items, each in a file of its own.

    Shapes: `starts` says where each item begins if all files are laid end to end, ascending; the
        answer is by item. Where the folder could not be read whole each file is read alone, and of
        what could not be read so either nothing is answered.
    """
    offsets = [offset for offset, _ in starts]
    items = [item for _, item in starts]
    with open_reader(CostlyPlaces()) as reader:
        try:
            return _read(reader, folder, Wanted(source, within=folder), offsets, items)
        except (ExportError, BadRecord):
            pass
    found: dict[str, ItemRecords] = {}
    with open_reader(CostlyPlaces()) as reader:
        for path, item in zip(sorted(folder.iterdir()), items, strict=True):
            try:
                found |= _read(reader, path, Wanted(source, within=folder), [0], [item])
            except ExportNotRecognized:  # it holds no record
                found[item] = ItemRecords()
            except (ExportError, BadRecord):
                continue
    return found


def _read(
    reader: ReaderProcess, path: Path, wanted: Wanted, offsets: Sequence[int], items: Sequence[str]
) -> dict[str, ItemRecords]:
    """Raises: ExportError, BadRecord."""
    found = {item: ItemRecords() for item in items}
    for reading in reader.look(path, wanted).readings:
        for each in reading.items():
            at = bisect_right(offsets, each.position) - 1
            found[items[max(at, 0)]].note(each)
    return found


class DavRecords(msgspec.Struct, frozen=True):
    """The records of the accounts that calendars or address books filled."""

    records: FedRecords
    clock: Callable[[], int]

    def leave_outdated(
        self, left: Collection[str], now: ItemRecords, accounts: Collection[str]
    ) -> int:
        """Delete what an item that changed does not hold any more, and no other; how many records.

        Shapes: `left` are keys of it before that no item holds now.
        """
        if not now.is_whole or not now.keys:
            return 0
        count = self.delete(sorted(left), accounts)
        for account in accounts:
            for event, slots in now.slots.items():
                if len(slots) < MOST_SLOTS:
                    stored = self._slots(account, event)
                    gone = [e.key for e in stored if e.key not in slots and self._is_told(e, now)]
                    count += self._delete(account, SLOTS, gone)
        return count

    def delete(self, keys: Iterable[str], accounts: Collection[str]) -> int:
        """Delete records with the times at which they take place; how many."""
        by_stream: dict[str, list[str]] = defaultdict(list)
        for each in keys:
            stream, _, key = each.partition("/")
            by_stream[stream].append(key)
        count = 0
        for account in accounts:
            for event in by_stream[EVENTS]:
                slots = [each.key for each in self._slots(account, event)]
                count += self._delete(account, SLOTS, slots)
            for stream, gone in by_stream.items():
                count += self._delete(account, stream, gone)
        return count

    def _slots(self, account: str, event: str) -> Iterator[StoredRecord]:
        after = ""
        while found := self.records.store.records_holding(
            account, SLOTS, EVENT_OF, event, after, AT_ONCE
        ):
            yield from found
            after = found[-1].key

    def _is_told(self, slot: StoredRecord, now: ItemRecords) -> bool:
        """Whether the reader would have said this time of an event if it took place then."""
        first = datetime.fromtimestamp(self.clock() / NANOSECONDS, UTC) - COMPARED_DAYS
        event = canonical_key([slot.data[EVENT_OF]])
        return event not in now.repeating or str(slot.data["starts_on"]) >= f"{first.date()}"

    def _delete(self, account: str, stream: str, keys: Sequence[str]) -> int:
        parts = (keys[begin : begin + AT_ONCE] for begin in range(0, len(keys), AT_ONCE))
        return sum(self.records.delete(account, stream, part) for part in parts)


def lonely(gone: Mapping[str, Sequence[str]], alive: Iterable[Sequence[str]]) -> set[str]:
    """Records of items that are gone which no other item holds."""
    shared = {key for keys in alive for key in keys}
    return {key for keys in gone.values() for key in keys} - shared
