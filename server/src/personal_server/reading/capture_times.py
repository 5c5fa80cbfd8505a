"""When the newest file of a source was captured, remembered until something is written."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from personal_server.domain.authority import ReadableSource
from personal_server.domain.cursor import sources_digest
from personal_server.enforcement.scopes import scope_of
from personal_server.storage.ports.snapshots import ReadSnapshot

_KEPT_TIMES = 1_024


class CaptureTimes:
    """The newest granted change of a source, remembered for one state of the store."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, int, str], int | None] = OrderedDict()
        self._lock = Lock()

    def newest(self, snapshot: ReadSnapshot, source: ReadableSource) -> int | None:
        """`emitted_at` (ns) of the newest granted change among visible records."""
        key = (snapshot.epoch, snapshot.horizon, sources_digest([source]))
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = snapshot.summary(scope_of(source)).last_emitted_at_ns
        with self._lock:
            self._known[key] = found
            while len(self._known) > _KEPT_TIMES:
                self._known.popitem(last=False)
        return found
