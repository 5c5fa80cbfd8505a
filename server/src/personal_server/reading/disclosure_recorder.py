"""The recorder between reads and the disclosure log: entries wait a moment, then are durable.

Rule: an entry is kept until it is written; while nothing can be written for 10 s, client reads
are refused rather than left unrecorded.
Source: docs/contract/resource-server.md 14.3.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from pdpp_kernel.errors import PersonalServerError, StorageUnavailable
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.disclosure import DisclosureEntry
from personal_server.storage.ports.disclosure_stores import DisclosureStore

_log = logging.getLogger(__name__)
GATHER_SECONDS = 0.25
TOLERATED_NS = 10 * NANOSECONDS

DisclosureWatch = Callable[[Sequence[DisclosureEntry]], None]
"""Looks at entries once they are written.  Raises whatever keeps it from that."""
MOST_UNWATCHED = 10_000


def nobody_watches(entries: Sequence[DisclosureEntry]) -> None:
    """Take no notice."""
    del entries


class DisclosureRecorder:
    """Gathers entries and writes them in one transaction, from a thread of its own.

    `background` off leaves the writing to `flush`; `watch` is shown what was written, again if it
    could not look.
    """

    def __init__(
        self,
        store: DisclosureStore,
        clock: Callable[[], int],
        watch: DisclosureWatch = nobody_watches,
        *,
        background: bool = True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._watch = watch
        self._waiting: list[DisclosureEntry] = []
        self._unwatched: list[DisclosureEntry] = []
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
                "The server cannot write the read log, so no records can be read now.",
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
            except Exception as error:  # noqa: BLE001 (whatever it was, the entries are kept)
                with self._entries_lock:
                    self._waiting[:0] = entries
                self._note_failure(error)
                return False
            if self._failing_since_ns is not None:
                _log.warning("the read log can be written again")
            self._failing_since_ns = None
            self._show(entries)
            return True

    def _show(self, entries: Sequence[DisclosureEntry]) -> None:
        """Have what was written looked at; what could not be is shown again with the next."""
        waiting = [*self._unwatched, *entries][-MOST_UNWATCHED:]
        try:
            self._watch(waiting)
        except Exception as error:  # noqa: BLE001 (reading goes on, and the log is complete)
            if not self._unwatched:
                _log.error("unusual reading cannot be checked: %s", type(error).__name__)
            self._unwatched = waiting
        else:
            self._unwatched = []

    def _note_failure(self, error: Exception) -> None:
        if self._failing_since_ns is None:
            self._failing_since_ns = self._clock()
            code = error.code if isinstance(error, PersonalServerError) else "internal_error"
            kind = type(error).__name__
            _log.error("the read log cannot be written: %s (%s)", code, kind)

    def close(self) -> None:
        """Write what waits and end the thread; what cannot be written even now is told."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if not self.flush():
            _log.error("%d entries of the read log are lost", len(self._waiting))

    def _write_until_closed(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._closing.wait(GATHER_SECONDS)
            if not self.flush():
                self._wake.set()
