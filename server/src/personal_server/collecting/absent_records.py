"""The records of a connection that a file, read whole, no longer holds.

An import deletes nothing by itself: a narrower file is no reason to. But a row without a key is
known by its content, so an edited one would stay beside its successor unseen. What a file lacks is
counted, and deleted where the owner says that the file is the whole, or the account got no other.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Protocol

from pdpp_kernel.record import StoredRecord, canonical_key
from pdpp_kernel.source_item import SourceRecord
from pdpp_kernel.values import instant_ns
from personal_server.collecting.begun_replacements import BegunReplacement
from personal_server.storage.ports.whole_store import RecordStore

MOST_AT_ONCE = 100_000
DELETED_AT_ONCE = 2_000
_MARK_BYTES = 8


class StreamCounts(Protocol):
    """What is counted of a stream."""

    read: int
    rejected: int
    absent: int
    deleted: int
    of_others: int


class AbsentRecords:
    """Notes each record that a file gives, in eight bytes; what is stored beyond them is absent.

    Rule: what others write while the file is read is none of it.
    """

    def __init__(
        self, store: RecordStore, connection_id: str, replaces: BegunReplacement | None = None
    ) -> None:
        """Records of an account; what it `replaces` may have been begun earlier."""
        if replaces is None:
            with store.snapshot() as snapshot:
                self._begun = snapshot.horizon
        else:
            self._begun = replaces.horizon
        self._replaces = replaces
        self._store = store
        self._connection_id = connection_id
        self._seen: dict[str, array[int]] = {}
        self._is_sorted = False

    def note(self, record: SourceRecord) -> None:
        """Remember that the file holds a record."""
        marks = self._seen.setdefault(record.stream, array("Q"))
        marks.append(_mark(canonical_key([record.data["id"]])))

    def count_all(
        self,
        counts_of: Callable[[str], StreamCounts],
        declared: Collection[str],
        stored: Mapping[str, int],
    ) -> None:
        """Count what is stored and not in the file, where it can be told."""
        # Also of streams that the file no longer has, such as a table that a database lost.
        for stream in {**dict.fromkeys(declared), **stored}:
            of_stream = counts_of(stream)
            good = of_stream.read - of_stream.rejected
            if self._replaces is not None or stored.get(stream, 0) > good:
                self._count(stream, of_stream)

    def delete_all(
        self,
        counts: Mapping[str, StreamCounts],
        declared: Collection[str],
        clock: Callable[[], int],
        delete: Callable[[str, Sequence[str]], int],
    ) -> None:
        """Delete what was counted; `delete` takes the keys of a stream, and says how many went."""
        for stream, of_stream in counts.items():
            if of_stream.absent and stream not in declared:
                of_stream.deleted = self._store.delete_stream(self._connection_id, stream, clock())
            elif of_stream.absent:
                for keys in self.keys(stream):
                    for begin in range(0, len(keys), DELETED_AT_ONCE):
                        of_stream.deleted += delete(stream, keys[begin : begin + DELETED_AT_ONCE])

    def keys(self, stream: str) -> Iterator[list[str]]:
        """Their keys, so many at a time; the caller deletes them before it asks for more."""
        while True:
            with closing(self._absent(stream)) as absent:
                keys = list(islice(absent, MOST_AT_ONCE))
            if not keys:
                return
            yield keys

    def _count(self, stream: str, of_stream: StreamCounts) -> None:
        """Count what is stored and not in the file: of before, and what others wrote since.

        Rule: records with the time (`emitted_at`) of the replacement are its own: a reading of the
            file that was killed left them.
        """
        own_ns = instant_ns(self._replaces.emitted_at) if self._replaces else None
        for stored in self._beyond(stream):
            if self._is_before(stored):
                of_stream.absent += 1
            elif stored.created.emitted_at_ns != own_ns:
                of_stream.of_others += 1

    def _absent(self, stream: str) -> Generator[str]:
        with closing(self._beyond(stream)) as beyond:
            yield from (stored.key for stored in beyond if self._is_before(stored))

    def _beyond(self, stream: str) -> Generator[StoredRecord]:
        """What is stored and not in the file, whoever wrote it."""
        keys = self._sorted(stream)
        with self._store.snapshot(None) as snapshot:
            for stored in snapshot.export(self._connection_id, stream):
                mark = _mark(stored.key)
                at = bisect_left(keys, mark)
                if at == len(keys) or keys[at] != mark:
                    yield stored

    def _is_before(self, stored: StoredRecord) -> bool:
        return stored.created.sequence <= self._begun

    def _sorted(self, stream: str) -> array[int]:
        if not self._is_sorted:
            self._seen = {name: array("Q", sorted(m)) for name, m in self._seen.items()}
            self._is_sorted = True
        return self._seen.get(stream, array("Q"))


def _mark(key: str) -> int:
    digest = hashlib.blake2b(key.encode(), digest_size=_MARK_BYTES).digest()
    return int.from_bytes(digest, "little")
