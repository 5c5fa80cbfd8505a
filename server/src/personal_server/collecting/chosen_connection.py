"""Which connection a caller means, by its name or by its source."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pdpp_kernel.errors import AmbiguousConnection, ConnectionNotFound, InvalidRequest
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.envelope import AvailableConnection
from personal_server.storage.ports.snapshots import CatalogReads

NAMED_CANDIDATES = 12


def named_connection(connections: Iterable[Connection], text: str) -> Connection:
    """The connection of that id, or else of that name, whatever its case.

    Raises: ConnectionNotFound, AmbiguousConnection; either names what there is.
    """
    listed = list(connections)
    for connection in listed:
        if connection.connection_id == text:
            return connection
    name = text.strip().casefold()
    named = [c for c in listed if (c.display_name or "").casefold() == name]
    if len(named) == 1:
        return named[0]
    if named:
        raise _ambiguous(named)
    raise ConnectionNotFound(
        "No account has that id or name.",
        param="connection_id",
        available_connections=[_candidate(c) for c in listed[:NAMED_CANDIDATES]],
    )


def write_target(
    catalog: CatalogReads, connection_id: str | None, connector: str | None
) -> Connection:
    """The connection that a write names, by itself or as the only one of its connector.

    Source: docs/contract/resource-server.md 13.
    Raises: InvalidRequest (neither given), ConnectionNotFound, AmbiguousConnection.
    """
    if connection_id is None and connector is None:
        raise InvalidRequest(
            "Name the account to write to: connection_id, or connector_id.", param="connection_id"
        )
    found = [
        connection
        for connection in catalog.connections()
        if connector in (None, connection.connector_key, connection.source_id)
    ]
    if connection_id is not None:
        found = [c for c in found if c.connection_id == connection_id]
        if not found:
            raise ConnectionNotFound(
                "There is no account with this connection_id.", param="connection_id"
            )
        return found[0]
    usable = [c for c in found if c.status is not ConnectionStatus.REVOKED]
    if not usable:
        raise ConnectionNotFound(
            "This source has no account with this connection_id.", param="connector_id"
        )
    if len(usable) > 1:
        raise _ambiguous(usable)
    return usable[0]


def _ambiguous(connections: list[Connection]) -> AmbiguousConnection:
    candidates = [_candidate(connection) for connection in connections[:NAMED_CANDIDATES]]
    return AmbiguousConnection(
        f"{len(connections)} accounts match; name one with connection_id.",
        param="connection_id",
        retry_with="connection_id",
        available_connections=candidates,
        available_connection_count=len(connections),
        available_connections_truncated=len(candidates) < len(connections),
        available_connections_omitted=len(connections) - len(candidates) or None,
        discovery_hint=(
            "GET /v1/owner/connections lists every account."
            if len(candidates) < len(connections)
            else None
        ),
    )


def _candidate(connection: Connection) -> dict[str, object]:
    return msgspec.to_builtins(
        AvailableConnection(
            connection_id=connection.connection_id,
            connector_key=connection.connector_key,
            display_name=connection.display_name,
        )
    )
