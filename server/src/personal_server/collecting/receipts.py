"""What a connection remembers of its imports: the places reached, and a receipt of each.

Rule: a place counts for the very same files only; a finished import forgets its own and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pdpp_kernel.source_item import Data
from personal_server.storage.ports.whole_store import RecordStore

MEMBER = "import"
MOST_PLACES = 20
MOST_RECEIPTS = 100


@dataclass(frozen=True, slots=True)
class ImportMemory:
    """The memory of one connection, kept in the state of its first stream."""

    store: RecordStore
    connection_id: str
    stream: str

    def place(self, fingerprint: str) -> int:
        """Where reading these files was interrupted, or the beginning."""
        position = _places(self._remembered()).get(fingerprint)
        return position if isinstance(position, int) else 0

    def keep_place(self, fingerprint: str, position: int, now_ns: int) -> None:
        """Note how far reading these files has come."""
        remembered = self._remembered()
        positions = _places(remembered, but=fingerprint)
        latest = dict(list(positions.items())[1 - MOST_PLACES :])
        self._put(remembered | {"places": latest | {fingerprint: position}}, now_ns)

    def finish(self, fingerprint: str, receipt: Data, now_ns: int) -> None:
        """Forget the place and keep the receipt."""
        remembered = self._remembered()
        newest = [*_receipts(remembered), receipt][-MOST_RECEIPTS:]
        positions = _places(remembered, but=fingerprint)
        self._put(remembered | {"places": positions, "receipts": newest}, now_ns)

    def receipts(self) -> list[Data]:
        """What was imported so far, oldest first."""
        return _receipts(self._remembered())

    def is_unfinished(self) -> bool:
        """Whether a place is noted: the import of some files has not come to their end."""
        return bool(_places(self._remembered()))

    def _remembered(self) -> Data:
        state = self.store.state(self.connection_id).state.get(self.stream)
        member = cast("Data", state).get(MEMBER) if isinstance(state, dict) else None
        return cast("Data", member) if isinstance(member, dict) else {}

    def _put(self, remembered: Data, now_ns: int) -> None:
        self.store.put_state(self.connection_id, {self.stream: {MEMBER: remembered}}, now_ns)


def receipts_of(store: RecordStore, connection_id: str) -> list[Data]:
    """What was imported into a connection so far, oldest first."""
    streams = store.state(connection_id).state
    all_receipts = [
        receipt
        for name in streams
        for receipt in ImportMemory(store, connection_id, name).receipts()
    ]
    return sorted(all_receipts, key=lambda receipt: str(receipt["imported_at"]))


def _places(remembered: Data, but: str | None = None) -> Data:
    member = remembered.get("places")
    positions = cast("Data", member) if isinstance(member, dict) else {}
    return {
        fingerprint: position for fingerprint, position in positions.items() if fingerprint != but
    }


def _receipts(remembered: Data) -> list[Data]:
    member = remembered.get("receipts")
    return cast("list[Data]", member) if isinstance(member, list) else []
