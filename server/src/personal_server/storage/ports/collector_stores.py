"""What a collector asks of a store: its runs and where it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from personal_server.domain.stored import CollectionRun, Rejection, StreamState


class CollectorStore(Protocol):
    """What collectors leave beside records."""

    def record_run(self, connection_id: str, run: CollectionRun) -> None:
        """Store the newest word about a run.  Raises ConnectionNotFound."""
        ...

    def state(self, connection_id: str) -> StreamState:
        """Collector bookmarks.  Raises ConnectionNotFound."""
        ...

    def put_state(
        self, connection_id: str, changes: Mapping[str, object], now_ns: int
    ) -> StreamState:
        """Replace per stream (`None` removes) and return the whole.  Raises ConnectionNotFound."""
        ...

    def rejections(
        self, connection_id: str, limit: int, before: int | None
    ) -> tuple[tuple[int, Rejection], ...]:
        """Receipts with their numbers, newest first, numbers below `before`."""
        ...
