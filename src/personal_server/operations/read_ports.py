"""What every read needs from outside, in one value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from personal_server.domain.cursor import Sealer
from personal_server.operations.freshness import CaptureTimes
from personal_server.storage.ports import ReadSnapshot, RecordStore


@dataclass(frozen=True, slots=True)
class ReadPorts:
    """Store, sealer, clock (UTC ns), randomness, and what was learnt about unchanged states."""

    store: RecordStore
    sealer: Sealer
    clock: Callable[[], int]
    random_bytes: Callable[[int], bytes]
    capture_times: CaptureTimes = field(default_factory=CaptureTimes)

    def snapshot(self, timeout_seconds: float | None) -> AbstractContextManager[ReadSnapshot]:
        """One consistent state of the store."""
        return self.store.snapshot(timeout_seconds)
