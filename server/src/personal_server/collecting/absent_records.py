"""The records of a connection that a file, read whole, no longer holds.

An import deletes nothing by itself: a narrower file is no reason to. But a row without a key is
known by its content, so an edited one would stay beside its successor unseen. What a file lacks is
counted, and deleted where the owner says that the file is the whole.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice

from pdpp_kernel.record import canonical_key
from pdpp_kernel.source_item import SourceRecord
from personal_server.storage.ports.whole_store import RecordStore

MOST_AT_ONCE = 100_000
_MARK_BYTES = 8


class AbsentRecords:
    """Notes each record that a file gives, in eight bytes; what is stored beyond them is absent."""

    def __init__(self, store: RecordStore, connection_id: str) -> None:
        self._store = store
        self._connection_id = connection_id
        self._seen: dict[str, array[int]] = {}
        self._is_sorted = False

    def note(self, record: SourceRecord) -> None:
        """Remember that the file holds a record."""
        marks = self._seen.setdefault(record.stream, array("Q"))
        marks.append(_mark(canonical_key([record.data["id"]])))

    def count(self, stream: str) -> int:
        """How many records of a stream are stored and not in the file."""
        return sum(1 for _ in self._absent(stream))

    def keys(self, stream: str) -> Iterator[list[str]]:
        """Their keys, so many at a time; the caller deletes them before it asks for more."""
        while True:
            with closing(self._absent(stream)) as absent:
                keys = list(islice(absent, MOST_AT_ONCE))
            if not keys:
                return
            yield keys

    def _absent(self, stream: str) -> Generator[str]:
        keys = self._sorted(stream)
        with self._store.snapshot(None) as snapshot:
            for stored in snapshot.export(self._connection_id, stream):
                mark = _mark(stored.key)
                at = bisect_left(keys, mark)
                if at == len(keys) or keys[at] != mark:
                    yield stored.key

    def _sorted(self, stream: str) -> array[int]:
        if not self._is_sorted:
            self._seen = {name: array("Q", sorted(m)) for name, m in self._seen.items()}
            self._is_sorted = True
        return self._seen.get(stream, array("Q"))


def _mark(key: str) -> int:
    digest = hashlib.blake2b(key.encode(), digest_size=_MARK_BYTES).digest()
    return int.from_bytes(digest, "little")
