"""Threads over everything that was imported: a late parent joins, in whatever order files come.

Rule: a thread keeps its id for as long as it stays one. Of several that turn out to be one, one id
stays; the records of the others are moved before marks say so, so that an import that was
interrupted between does it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from pdpp_kernel.declaration import Stream
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.source_item import Data, ThreadLinks, stable_id
from personal_server.domain.stored import ThreadMark
from personal_server.storage.ports.whole_store import RecordStore

FIELD = "thread_id"
MOVED_AT_ONCE = 500
Look = tuple[str, int, int]


class BatchThreads:
    """The threads of the records of one batch, which go into one stream of a connection."""

    def __init__(self, store: RecordStore, connection_id: str, stream: Stream) -> None:
        self._store = store
        self._connection_id = connection_id
        self._stream = stream
        self._marks: dict[str, list[ThreadMark]] = {}
        self._new: dict[ThreadMark, None] = {}
        self._stored: set[str] = set()
        self._renamed: dict[str, str] = {}
        self._to_move: list[str] = []

    def join(self, records: Sequence[tuple[Data, ThreadLinks]]) -> None:
        """Give each record the thread that it belongs to."""
        self._recall({look for _, links in records for look in links.looks})
        threads = [self._joined(str(data[FIELD]), links) for data, links in records]
        for (data, _), thread in zip(records, threads, strict=True):
            data[FIELD] = self._now(thread)

    def moved(self) -> Iterator[list[Data]]:
        """Stored records whose thread has another id now, some at a time; each to be written."""
        for thread in self._to_move:
            after = ""
            while rows := self._held(thread, after):
                yield [dict(row.data) | {FIELD: self._now(thread)} for row in rows]
                after = rows[-1].key

    def keep_marks(self) -> None:
        """Keep the marks of the batch, once its records are stored."""
        marks = [replace(mark, thread=self._now(mark.thread)) for mark in self._new]
        if marks:
            self._store.leave_thread_marks(self._connection_id, self._stream.name, marks)

    def _recall(self, looks: Iterable[Look]) -> None:
        """Learn what was left before, and which of those threads have another id since."""
        while marks := self._find(looks):
            for mark in marks:
                self._marks.setdefault(mark.mark, []).append(mark)
            threads = {mark.thread for mark in marks} - self._stored
            self._stored |= threads
            looks = [(_renaming(thread), 0, 0) for thread in sorted(threads)]
        for thread in sorted(self._stored):
            for mark in self._marks.get(_renaming(thread), ()):
                self._renamed[thread] = mark.thread

    def _find(self, looks: Iterable[Look]) -> list[ThreadMark]:
        return self._store.thread_marks(self._connection_id, self._stream.name, looks)

    def _joined(self, own: str, links: ThreadLinks) -> str:
        """The thread of one record, with all threads that it connects made one."""
        joined = {self._now(thread) for look in links.looks for thread in self._left(look)}
        thread = min(joined & self._stored or joined or {own})
        for other in joined - {thread}:
            self._renamed[other] = thread
            if other in self._stored:
                self._to_move.append(other)
                self._leave(ThreadMark(_renaming(other), 0, thread))
        for mark, at in links.leaves:
            self._leave(ThreadMark(mark, at, thread))
        return thread

    def _left(self, look: Look) -> Iterator[str]:
        mark, since, until = look
        for each in self._marks.get(mark, ()):
            if since <= each.at <= until:
                yield each.thread

    def _leave(self, mark: ThreadMark) -> None:
        marks = self._marks.setdefault(mark.mark, [])
        if all((m.at, self._now(m.thread)) != (mark.at, mark.thread) for m in marks):
            marks.append(mark)
            self._new[mark] = None

    def _now(self, thread: str) -> str:
        while thread in self._renamed:
            thread = self._renamed[thread]
        return thread

    def _held(self, thread: str, after: str) -> list[StoredRecord]:
        row_key = (self._connection_id, self._stream.name)
        return self._store.records_holding(*row_key, FIELD, thread, after, MOVED_AT_ONCE)


def _renaming(thread: str) -> str:
    """The mark that says which id a thread has since it was joined with another."""
    return stable_id("m", "thread", thread)
