"""Which connection an import goes into: the one named, the only one there is, or a new one."""

from __future__ import annotations

from personal_server.cli.import_run import ImportPorts
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration import SourceDeclaration
from personal_server.errors import AmbiguousConnection, ConnectionNotWritable
from personal_server.operations.connections import create_connection


def connection_for(
    ports: ImportPorts, declaration: SourceDeclaration, name: str | None
) -> Connection:
    """Find or make the connection.

    Shapes: `name` is a display name or a connection id.
    Raises: AmbiguousConnection, ConnectionNotWritable.
    """
    with ports.store.snapshot() as snapshot:
        own = [c for c in snapshot.connections() if c.connector_key == declaration.connector_key]
    if name is not None:
        own = [c for c in own if name in (c.display_name, c.connection_id)]
    living = [c for c in own if c.status is not ConnectionStatus.REVOKED]
    if len(living) == 1:
        return living[0]
    if living:
        labels = ", ".join(c.display_name or c.connection_id for c in living)
        raise AmbiguousConnection(
            f"There are several accounts of this source: {labels}.",
            param="connection",
            next_step="Name one with --connection.",
        )
    if own and name is not None:
        raise ConnectionNotWritable(
            "That account was revoked.",
            param="connection",
            next_step="Reactivate it on the owner's pages, or choose another name.",
        )
    return create_connection(
        ports.store,
        ports.store.declaration(declaration.connector_key, None),
        name or declaration.display_name,
        ports.clock(),
        ports.random_bytes,
    )
