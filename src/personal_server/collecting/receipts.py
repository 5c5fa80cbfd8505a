"""What a connection remembers of its imports: the places reached, and a receipt of each.

Rule: a place counts for the very same files only; a finished import forgets its own and no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from personal_server.domain.source_item import Data
from personal_server.storage.ports import RecordStore

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
        place = self._part("places").get(fingerprint)
        return place if isinstance(place, int) else 0

    def keep_place(self, fingerprint: str, place: int, now_ns: int) -> None:
        """Note how far reading these files has come."""
        places = {k: v for k, v in self._part("places").items() if k != fingerprint}
        latest = list(places.items())[1 - MOST_PLACES :]
        self._put({"places": {**dict(latest), fingerprint: place}}, now_ns)

    def finish(self, fingerprint: str, receipt: Data, now_ns: int) -> None:
        """Forget the place and keep the receipt."""
        places = {k: v for k, v in self._part("places").items() if k != fingerprint}
        kept = [*self.receipts(), receipt][-MOST_RECEIPTS:]
        self._put({"places": places, "receipts": kept}, now_ns)

    def receipts(self) -> list[Data]:
        """What was imported so far, oldest first."""
        found = self._remembered().get("receipts")
        return cast("list[Data]", found) if isinstance(found, list) else []

    def _part(self, name: str) -> Mapping[str, object]:
        found = self._remembered().get(name)
        return cast("Data", found) if isinstance(found, dict) else {}

    def _remembered(self) -> Data:
        state = self.store.state(self.connection_id).state.get(self.stream)
        found = cast("Data", state).get(MEMBER) if isinstance(state, dict) else None
        return cast("Data", found) if isinstance(found, dict) else {}

    def _put(self, change: Data, now_ns: int) -> None:
        remembered = {MEMBER: self._remembered() | change}
        self.store.put_state(self.connection_id, {self.stream: remembered}, now_ns)
