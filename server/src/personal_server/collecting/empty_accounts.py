"""Accounts that an import made and then brought nothing into: they are taken away again."""

from __future__ import annotations

from personal_server.domain.connection import Connection
from personal_server.storage.ports.whole_store import RecordStore


def forget_if_empty(
    store: RecordStore, connection: Connection, *, made_since_ns: int, now_ns: int
) -> bool:
    """Erase a connection that was made since then and holds no record; whether it was erased.

    What the owner made beforehand stays, however empty it is.
    """
    if connection.created_at_ns < made_since_ns:
        return False
    with store.snapshot() as snapshot:
        holds_any = any(
            stream.connection_id == connection.connection_id and stream.record_count
            for stream in snapshot.stored_streams()
        )
    if holds_any:
        return False
    store.erase_connection(connection.connection_id, now_ns)
    return True
