"""Rebuilds: everything that is stored another way than it should be, moved while the server serves.

Then the word indexes are merged where writes left them in many parts, in slices as well.

Rule: a slice holds the write lock for some hundredths of a second and then leaves it as long to
others.  Whoever needs another shape of the tables of a source changes `storage/sql/layout`; this
brings it to the sources that exist.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from pdpp_kernel.values import percent_of
from personal_server.domain.stored import Rebuild
from personal_server.storage.ports.upkeep_stores import RebuildStore

EVERY_SECONDS = 2.0
SLICES_AT_ONCE = 20
PAUSE_SECONDS = 0.05
_log = logging.getLogger(__name__)


def percent_done(under_way: Iterable[Rebuild]) -> int:
    """Of all their records together; not a hundred before the end."""
    found = list(under_way)
    copied, records = sum(each.copied for each in found), sum(each.records for each in found)
    return percent_of(copied, records)


class RebuildWork:
    """Work for a worker thread: some slices, with room for others between them."""

    def __init__(self, store: RebuildStore, sleep: Callable[[float], None] = time.sleep) -> None:
        self._store = store
        self._sleep = sleep
        self._is_planned = False
        self._told: frozenset[tuple[str, str]] = frozenset()
        self._under_way: tuple[Rebuild, ...] = ()

    def __call__(self) -> None:
        """Plan once, then do up to `SLICES_AT_ONCE`."""
        if not self._is_planned:
            self._store.plan_rebuilds()
            self._is_planned = True
        for _ in range(SLICES_AT_ONCE):
            if not (self._store.rebuild_slice() or self._store.merge_slice()):
                break
            self._sleep(PAUSE_SECONDS)
        self._tell()

    def progress(self) -> dict[str, int]:
        """How many percent of the records that are stored anew are, while any are."""
        under_way = self._under_way
        return {"rebuilding": percent_done(under_way)} if under_way else {}

    def _tell(self) -> None:
        """A line when a stream begins, and one when it is done."""
        self._under_way = self._store.rebuilds()
        found = {(each.connection_id, each.stream): each for each in self._under_way}
        for stream_key in found.keys() - self._told:
            _log.info("storing %d records anew: %s %s", found[stream_key].records, *stream_key)
        for stream_key in self._told - found.keys():
            _log.info("stored anew: %s %s", *stream_key)
        self._told = frozenset(found)
