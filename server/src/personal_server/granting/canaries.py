"""Canaries as the owner's store knows them: where they stand, and whom they were given to.

Source: docs/contract/resource-server.md 14.6.
"""

from __future__ import annotations

from personal_server.granting.audit import Acting, audit
from personal_server.storage.authorization_rows import CanaryRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
)


def planted_records(store: AuthorizationStore) -> frozenset[tuple[str, str, str]]:
    """(connection_id, stream, key) of every canary."""
    with store.read() as reader:
        rows = reader.rows(CanaryRow)
    return frozenset((row.connection_id, row.stream, row.key) for row in rows)


def note_canary(
    writer: AuthorizationWriter,
    connection_id: str,
    stream: str,
    key: str,
    acting: Acting,
    now_ns: int,
) -> None:
    """A record is planted there."""
    row = CanaryRow(connection_id=connection_id, stream=stream, key=key, planted_at_ns=now_ns)
    writer.insert(row)
    audit(writer, "canary.planted", acting, now_ns, connection=connection_id, stream=stream)


def forget_canary(
    writer: AuthorizationWriter,
    connection_id: str,
    stream: str,
    key: str,
    acting: Acting,
    now_ns: int,
) -> bool:
    """No record is planted there any more; whether one was."""
    statement = writer.delete(
        CanaryRow,
        CanaryRow.connection_id.equals(connection_id),
        CanaryRow.stream.equals(stream),
        CanaryRow.key.equals(key),
    )
    if statement:
        audit(writer, "canary.removed", acting, now_ns, connection=connection_id, stream=stream)
    return bool(statement)
