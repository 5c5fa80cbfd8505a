"""The recorder between reads and the disclosure log: entries wait a moment, then are durable.

Rule: an entry is kept until it is written; while nothing can be written for 10 s, client reads are
refused rather than left unrecorded.
Source: RS contract 14.3.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from personal_server.domain.disclosure import DisclosureEntry
from personal_server.domain.values import NANOSECONDS
from personal_server.errors import PersonalServerError, StorageUnavailable
from personal_server.storage.ports import DisclosureStore

GATHER_SECONDS = 0.25
TOLERATED_NS = 10 * NANOSECONDS


class DisclosureRecorder:
    """Gathers entries and writes them in one transaction, from a thread of its own.

    `background` off leaves the writing to `flush`.
    """

    def __init__(
        self, store: DisclosureStore, clock: Callable[[], int], *, background: bool = True
    ) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._waiting: list[DisclosureEntry] = []
        self._failing_since_ns: int | None = None
        self._entries_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def enter(self, entries: Sequence[DisclosureEntry]) -> None:
        """Take entries to be written within a second."""
        if not entries:
            return
        with self._entries_lock:
            self._waiting.extend(entries)
            if self._background and self._thread is None:
                self._thread = threading.Thread(
                    target=self._write_until_closed, name="disclosures", daemon=True
                )
                self._thread.start()
        self._wake.set()

    def check(self) -> None:
        """Raise: StorageUnavailable, once nothing could be written for 10 s."""
        failing = self._failing_since_ns
        if failing is not None and self._clock() - failing >= TOLERATED_NS:
            raise StorageUnavailable(
                "The disclosure log cannot be written, so nothing is disclosed now.",
                retry_after_seconds=10,
            )

    def flush(self) -> bool:
        """Write what waits; whether that succeeded.  What could not be written is kept."""
        with self._write_lock:
            with self._entries_lock:
                entries, self._waiting = self._waiting, []
            if not entries:
                return True
            try:
                self._store.append_disclosures(entries)
            except PersonalServerError:
                with self._entries_lock:
                    self._waiting[:0] = entries
                self._failing_since_ns = self._failing_since_ns or self._clock()
                return False
            self._failing_since_ns = None
            return True

    def close(self) -> None:
        """Write what waits and end the thread."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _write_until_closed(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._closing.wait(GATHER_SECONDS)
            if not self.flush():
                self._wake.set()
