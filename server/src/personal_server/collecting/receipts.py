"""What a connection remembers of its imports: the places reached, and a receipt of each.

Rule: a place counts for the very same files only; a finished import forgets its own and no other.
Collectors could once write here: what has not the form of a receipt is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from pdpp_kernel.source_item import Data
from pdpp_kernel.values import instant_ns
from personal_server.storage.ports.whole_store import RecordStore

OWN, MEMBER = "~", "import"  # of its name among bookmarks, and formerly of a stream's bookmark
MOST_PLACES, MOST_RECEIPTS = 20, 100
BEGUN = "begun"  # what is under way is noted so (`begun_replacements.py`)


class _Counts(msgspec.Struct):
    new: int
    updated: int


class _Receipt(msgspec.Struct):
    """What whoever shows receipts relies on."""

    name: str
    imported_at: str
    streams: dict[str, _Counts]
    earliest: str | None = None
    latest: str | None = None
    skipped: dict[str, int] = {}


class ImportMemory(msgspec.Struct, frozen=True):
    """The memory of one connection, kept beside the bookmark of its first stream."""

    store: RecordStore
    connection_id: str
    stream: str

    def place(self, fingerprint: str) -> int:
        """Where reading these files was interrupted, or the beginning."""
        position = _places(self.remembered()).get(fingerprint)
        return position if isinstance(position, int) else 0

    def keep_place(self, fingerprint: str, position: int, now_ns: int) -> None:
        """Note how far reading these files has come."""
        remembered = self.remembered()
        positions = _places(remembered, but=fingerprint)
        latest = dict(list(positions.items())[1 - MOST_PLACES :])
        self.put(remembered | {"places": latest | {fingerprint: position}}, now_ns)

    def finish(self, fingerprint: str, receipt: Data, now_ns: int) -> None:
        """Forget the place and what was under way, and keep the receipt."""
        remembered = {n: each for n, each in self.remembered().items() if n != BEGUN}
        newest = [*_receipts(remembered), receipt][-MOST_RECEIPTS:]
        positions = _places(remembered, but=fingerprint)
        self.put(remembered | {"places": positions, "receipts": newest}, now_ns)

    def receipts(self) -> list[Data]:
        """What was imported so far, oldest first."""
        return _receipts(self.remembered())

    def remembered(self) -> Data:
        """All of it, by name."""
        return own_places(self.store.state(self.connection_id).state).get(OWN + self.stream, {})

    def put(self, remembered: Data, now_ns: int) -> None:
        """Have that in its place."""
        self.store.put_state(self.connection_id, {OWN + self.stream: remembered}, now_ns)


def is_own(name: str, value: object) -> bool:
    """Whether it is the memory of an import, and no collector's bookmark: no stream has a `~`."""
    return name.startswith(OWN) or (isinstance(value, dict) and {*cast("Data", value)} == {MEMBER})


def own_places(state: Mapping[str, Any]) -> Data:
    """The memories of imports in a state, under the names that they have now."""
    own = {name: value for name, value in state.items() if is_own(name, value)}
    older = {OWN + name: value[MEMBER] for name, value in own.items() if not name.startswith(OWN)}
    named = older | {name: value for name, value in own.items() if name.startswith(OWN)}
    return {name: value for name, value in named.items() if isinstance(value, dict)}


def receipts_of(store: RecordStore, connection_id: str) -> list[Data]:
    """What was imported into a connection so far, oldest first."""
    memories = own_places(store.state(connection_id).state).values()
    all_receipts = [receipt for memory in memories for receipt in _receipts(memory)]
    return sorted(all_receipts, key=lambda receipt: str(receipt["imported_at"]))


def has_unfinished(store: RecordStore, connection_id: str, but: str | None = None) -> bool:
    """Whether a place is noted: an import, but of files of one fingerprint, is not at its end."""
    memories = own_places(store.state(connection_id).state).values()
    return any(_places(memory, but) for memory in memories)


def has_bookmarks(store: RecordStore, connection_id: str) -> bool:
    """Whether a collector noted where it is."""
    state = store.state(connection_id).state
    return not all(is_own(name, value) for name, value in state.items())


def _places(remembered: Data, but: str | None = None) -> Data:
    member = remembered.get("places")
    positions = cast("Data", member) if isinstance(member, dict) else {}
    return {name: position for name, position in positions.items() if name != but}


def _receipts(remembered: Data) -> list[Data]:
    member = remembered.get("receipts")
    found = cast("list[Data]", member) if isinstance(member, list) else []
    return [each for each in found if _is_receipt(each)]


def _is_receipt(value: object) -> bool:
    try:
        receipt = msgspec.convert(value, _Receipt)
    except msgspec.ValidationError:
        return False
    return instant_ns(receipt.imported_at) is not None
