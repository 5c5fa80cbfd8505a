"""All ports of records together, as a backend implements them."""

from __future__ import annotations

from typing import Protocol

from personal_server.storage.ports.collector_stores import CollectorStore
from personal_server.storage.ports.passage_stores import PassageStore
from personal_server.storage.ports.record_stores import (
    BlobStore,
    ConnectionStore,
    DeclarationStore,
    PersonStore,
    RecordWriter,
    StoredRecords,
    ThreadStore,
)
from personal_server.storage.ports.snapshots import Snapshots
from personal_server.storage.ports.upkeep_stores import RebuildStore, ServerStore


class RecordStore(
    Snapshots,
    DeclarationStore,
    ConnectionStore,
    RecordWriter,
    CollectorStore,
    BlobStore,
    StoredRecords,
    ThreadStore,
    PersonStore,
    ServerStore,
    RebuildStore,
    PassageStore,
    Protocol,
):
    """Everything a backend does for records."""
