"""Connections: one configured account of a source, and what may happen to it.

Rule: the status table is data; a transition that it does not list does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class ConnectionStatus(StrEnum):
    """`active` and `paused` are readable by clients; `revoked` by the owner only."""

    DRAFT = "draft"
    ACTIVE = "active"
    PAUSED = "paused"
    REVOKED = "revoked"


CLIENT_READABLE = frozenset({ConnectionStatus.ACTIVE, ConnectionStatus.PAUSED})

# (action, from) -> to (docs/contract/resource-server.md 14.2); "record" is the first accepted one.
TRANSITIONS: Mapping[tuple[str, ConnectionStatus], ConnectionStatus] = {
    ("record", ConnectionStatus.DRAFT): ConnectionStatus.ACTIVE,
    ("pause", ConnectionStatus.ACTIVE): ConnectionStatus.PAUSED,
    ("resume", ConnectionStatus.PAUSED): ConnectionStatus.ACTIVE,
    ("revoke", ConnectionStatus.ACTIVE): ConnectionStatus.REVOKED,
    ("revoke", ConnectionStatus.PAUSED): ConnectionStatus.REVOKED,
    ("revoke", ConnectionStatus.DRAFT): ConnectionStatus.REVOKED,
    ("reactivate", ConnectionStatus.REVOKED): ConnectionStatus.ACTIVE,
}


class Connection(msgspec.Struct, frozen=True):
    """One configured account of a source.  Times are UTC nanoseconds."""

    connection_id: str
    connector_key: str
    source_id: str
    display_name: str | None
    status: ConnectionStatus
    created_at_ns: int
    updated_at_ns: int
    revoked_at_ns: int | None = None
