"""The records that an import read, by name: for a feed that follows what goes from its place."""

from __future__ import annotations

from pdpp_kernel.record import canonical_key
from pdpp_kernel.source_item import SourceRecord


class ListedRecords:
    """Notes the key of each record that a reading gives."""

    def __init__(self) -> None:
        self._streams: dict[str, set[str]] = {}

    def note(self, record: SourceRecord) -> None:
        """Remember that it was read."""
        keys = self._streams.setdefault(record.stream, set())
        keys.add(canonical_key([record.data["id"]]))

    def as_json(self) -> dict[str, list[str]]:
        """The keys, by stream."""
        return {stream: sorted(keys) for stream, keys in self._streams.items()}
