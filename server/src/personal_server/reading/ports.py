"""What every read needs from outside, in one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import msgspec

from personal_server.domain.cursor import Sealer
from personal_server.reading.capture_times import CaptureTimes
from personal_server.reading.rankings import Rankings, RecentSearches
from personal_server.reading.semantic_search import QueryEmbedder
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.storage.ports.whole_store import RecordStore

SignExport = Callable[[str], Mapping[str, str]]
"""The members by which an export shows who made it, from the digest in its end."""


def unsigned(sha256: str) -> Mapping[str, str]:
    """Nobody signs."""
    del sha256
    return {}


PlantedRecords = Callable[[], frozenset[tuple[str, str, str]]]
"""(connection_id, stream, key) of the records that the owner planted and that are not theirs."""


class ReadPorts(msgspec.Struct, frozen=True):
    """Store, sealer, clock (UTC ns), randomness, what is kept between reads, planted records.

    `sign_export` signs what the owner exports;
    `time_zone` is the owner's, by its IANA name; `embedder` is there where meaning is searched.
    """

    store: RecordStore
    sealer: Sealer
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    capture_times: CaptureTimes = msgspec.field(default_factory=CaptureTimes)
    rankings: Rankings = msgspec.field(default_factory=Rankings)
    recent: RecentSearches[object] = msgspec.field(default_factory=RecentSearches[object])
    planted: PlantedRecords = frozenset
    time_zone: Callable[[], str] = lambda: "UTC"
    embedder: QueryEmbedder | None = None
    sign_export: SignExport = unsigned

    def snapshot(self, timeout_seconds: float | None) -> AbstractContextManager[ReadSnapshot]:
        """One consistent state of the store."""
        return self.store.snapshot(timeout_seconds)


def model_of(ports: ReadPorts) -> str | None:
    """The model by which meaning is searched, if one is chosen."""
    return None if ports.embedder is None else ports.embedder.model
