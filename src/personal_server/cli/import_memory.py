"""What a connection remembers of its imports: the places reached, and a receipt of each.

Rule: a place counts for the very same files only; a finished import forgets its own and no other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

from personal_server.domain.source_item import Data
from personal_server.sources.export import Export
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


def file_facts(export: Export) -> Data:
    """What identifies the files of an export; a digest where it is one file."""
    path = export.path
    facts: Data = {"name": path.name, "files": len(export.members)}
    if path.is_dir():
        return facts | {"size_bytes": export.total_bytes}
    try:
        stated = path.stat()
        digest = _sha256(path, stated.st_size, stated.st_mtime_ns)
    except OSError:  # moved away meanwhile; what it held is stored
        return facts | {"size_bytes": export.total_bytes}
    return facts | {"size_bytes": stated.st_size, "sha256": digest}


@lru_cache(maxsize=4)
def _sha256(path: Path, _size_bytes: int, _modified_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
