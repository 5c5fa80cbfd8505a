"""Freshness: how old the records of a source are, from its runs and its visible records.

Rule: only granted fields of visible records count; the newest of them is looked up once per state
of the store.
Source: docs/contract/resource-server.md 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

import msgspec

from pdpp_kernel.values import NANOSECONDS, render_instant
from pdpp_kernel.wire_objects import Instant, WireObject
from personal_server.domain.authority import ReadableSource
from personal_server.domain.stored import Collection, RunStatus
from personal_server.reading.capture_times import CaptureTimes
from personal_server.storage.ports.snapshots import ReadSnapshot

FreshnessStatus = Literal["current", "stale", "unknown"]
CURRENT: FreshnessStatus = "current"
STALE: FreshnessStatus = "stale"
UNKNOWN: FreshnessStatus = "unknown"

_WORST_FIRST: tuple[FreshnessStatus, ...] = (STALE, UNKNOWN, CURRENT)
_ENDED_BADLY = frozenset({RunStatus.FAILED, RunStatus.CANCELLED})


class ShownFreshness(WireObject):
    """How fresh something is, as answers say it."""

    component: ClassVar = "Freshness"

    status: FreshnessStatus
    captured_at: Instant | None
    last_attempted_at: Instant | None


class Freshness(msgspec.Struct, frozen=True):
    """How fresh one source is.  Times are UTC nanoseconds."""

    status: FreshnessStatus
    captured_at_ns: int | None
    last_attempted_at_ns: int | None

    @property
    def order(self) -> tuple[int, int]:
        """Least fresh first."""
        return (_WORST_FIRST.index(self.status), self.captured_at_ns or 0)

    def render(self) -> ShownFreshness:
        """The wire form."""
        captured, attempted = self.captured_at_ns, self.last_attempted_at_ns
        return ShownFreshness(
            status=self.status,
            captured_at=None if captured is None else render_instant(captured),
            last_attempted_at=None if attempted is None else render_instant(attempted),
        )


def freshness_of(
    source: ReadableSource,
    collection: Collection | None,
    newest_ns: int | None,
    now_ns: int,
) -> Freshness:
    """The freshness of one source; `newest_ns` stands in when no run has succeeded."""
    run = collection.last_run if collection else None
    succeeded = collection.last_succeeded_at_ns if collection else None
    captured = newest_ns if succeeded is None else succeeded
    limit = source.maximum_staleness_seconds
    status: FreshnessStatus = UNKNOWN
    if limit is not None and captured is not None:
        status = CURRENT if now_ns - captured <= limit * NANOSECONDS else STALE
    if run is not None and run.status in _ENDED_BADLY:
        status = STALE
    return Freshness(status, captured, run.at_ns if run else None)


def least_fresh(
    snapshot: ReadSnapshot,
    times: CaptureTimes,
    sources: Iterable[ReadableSource],
    now_ns: int,
) -> ShownFreshness | None:
    """`meta.freshness` of a read of several sources; `None` without any."""
    collections = snapshot.collections()
    found = [source_freshness(snapshot, times, s, collections, now_ns) for s in sources]
    if not found:
        return None
    return least_of(found).render()


def least_of(found: Iterable[Freshness]) -> Freshness:
    """The least fresh of several."""
    return min(found, key=lambda freshness: freshness.order)


def source_freshness(
    snapshot: ReadSnapshot,
    times: CaptureTimes,
    source: ReadableSource,
    collections: Mapping[str, Collection],
    now_ns: int,
) -> Freshness:
    """The freshness of one source; its records are asked only where no run has succeeded."""
    collection = collections.get(source.connection_id)
    known = collection is not None and collection.last_succeeded_at_ns is not None
    newest = None if known else times.newest(snapshot, source)
    return freshness_of(source, collection, newest, now_ns)


def connection_freshness(
    snapshot: ReadSnapshot,
    times: CaptureTimes,
    sources: Sequence[ReadableSource],
    collection: Collection | None,
    now_ns: int,
) -> Freshness:
    """The freshness of a whole connection: of the newest record in any of its streams."""
    if not sources:
        last = None if collection is None or collection.last_run is None else collection.last_run
        succeeded = None if collection is None else collection.last_succeeded_at_ns
        return Freshness(UNKNOWN, succeeded, None if last is None else last.at_ns)
    newest = [times.newest(snapshot, source) for source in sources]
    known = [at_ns for at_ns in newest if at_ns is not None]
    return freshness_of(sources[0], collection, max(known, default=None), now_ns)
