"""Forgetting: old changes, old disclosures and bytes that no record came to reference.

Rule: records, tombstones' keys and grants are never forgotten by age.
Source: RS contract 8, 12.2, 14.3.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import anyio
import anyio.to_thread

from personal_server.domain.values import DAY_NANOSECONDS
from personal_server.errors import StorageUnavailable
from personal_server.storage.ports import DisclosureStore, RecordStore

EVERY_SECONDS = 3_600
UNREFERENCED_BLOB_NS = DAY_NANOSECONDS

_log = logging.getLogger("personal_server.forgetting")


@dataclass(frozen=True, slots=True)
class Retention:
    """For how long what is kept.  Units: days; 0 is for ever."""

    history_days: int = 180
    disclosure_days: int = 400


def forget(
    records: RecordStore, disclosures: DisclosureStore, retention: Retention, now_ns: int
) -> None:
    """Forget what is over its time."""
    if retention.history_days:
        records.prune_history(now_ns - retention.history_days * DAY_NANOSECONDS)
    if retention.disclosure_days:
        disclosures.forget_disclosures(now_ns - retention.disclosure_days * DAY_NANOSECONDS)
    records.sweep_blobs(now_ns - UNREFERENCED_BLOB_NS)


async def keep_forgetting(
    records: RecordStore,
    disclosures: DisclosureStore,
    retention: Retention,
    clock: Callable[[], int],
) -> None:
    """Forget now, then every hour until cancelled; what fails is told and repeated."""
    while True:
        try:
            await anyio.to_thread.run_sync(forget, records, disclosures, retention, clock())
        except StorageUnavailable as error:
            _log.warning("forgetting postponed: %s", error.code)
        await anyio.sleep(EVERY_SECONDS)
