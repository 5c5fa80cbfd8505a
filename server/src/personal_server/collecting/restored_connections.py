"""The connection that an own export names: found again, or made anew."""

from __future__ import annotations

from collections.abc import Callable

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.collecting.connections import ID_BYTES, checked_name
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.storage.ports.whole_store import RecordStore


def restored_connection(
    store: RecordStore,
    declaration: SourceDeclaration,
    connection_id: str,
    display_name: str | None,
    created_at_ns: int,
    now_ns: int,
    random_bytes: Callable[[int], bytes],
) -> tuple[Connection, bool]:
    """The connection that an export names, and whether it had to be made.

    Where another source has its id, it gets another one, and is known by when it was made.
    Raises: InvalidRequest (name).
    """
    with store.snapshot() as snapshot:
        by_id = {c.connection_id: c for c in snapshot.connections()}
    same = by_id.get(connection_id)
    if same is not None and same.connector_key == declaration.connector_key:
        return same, False
    for other in by_id.values() if same is not None else ():
        if (other.connector_key, other.created_at_ns) == (declaration.connector_key, created_at_ns):
            return other, False
    connection = Connection(
        connection_id=f"cin_{random_bytes(ID_BYTES).hex()}" if same else connection_id,
        connector_key=declaration.connector_key,
        source_id=declaration.source_id,
        display_name=checked_name(display_name),
        status=ConnectionStatus.DRAFT,
        created_at_ns=created_at_ns,
        updated_at_ns=now_ns,
    )
    store.add_connection(connection)
    return connection, True
