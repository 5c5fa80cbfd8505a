"""The accounts of a source that an import can go to."""

from __future__ import annotations

from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.storage.ports.whole_store import RecordStore


def accounts_of(store: RecordStore, connector_key: str) -> list[Connection]:
    """The accounts of a source that take imports."""
    with store.snapshot() as snapshot:
        return [
            c
            for c in snapshot.connections()
            if c.connector_key == connector_key and c.status is not ConnectionStatus.REVOKED
        ]
