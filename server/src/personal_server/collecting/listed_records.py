"""The records that an import read, by name: for a feed that follows what goes from its place.

Rule: a name is in the file before its record is stored, so that none is lost with the import.
"""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.record import canonical_key
from pdpp_kernel.source_item import SourceRecord


class ListedRecords:
    """Notes the key of each record that a reading gives, also in a file of the feed."""

    def __init__(self, journal: Path, account: str) -> None:
        self._journal = journal
        self._account = account
        self._streams: dict[str, set[str]] = {}
        self._waiting: list[str] = []

    def note(self, record: SourceRecord) -> None:
        """Remember that it was read."""
        key = canonical_key([record.data["id"]])
        if "\n" in key:  # no record has such a key, and behind it another name could stand
            return
        self._streams.setdefault(record.stream, set()).add(key)
        self._waiting.append(f"{self._account}/{record.stream}/{key}\n")

    def keep(self) -> None:
        """Write what was noted, before it is stored; not behind half a line of another import."""
        with self._journal.open("a", encoding="utf-8") as out:
            out.writelines(("\n", *self._waiting))
        self._waiting.clear()

    def as_json(self) -> dict[str, list[str]]:
        """The keys, by stream."""
        return {stream: sorted(keys) for stream, keys in self._streams.items()}
