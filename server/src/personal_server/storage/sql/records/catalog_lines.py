"""Lines of declarations and connections as values."""

from __future__ import annotations

from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import StoredDeclaration
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.fixed_tables import ConnectionRow, DeclarationRow
from personal_server.storage.sql.statements import listed

# The columns of a `StoredDeclaration` and of a `Connection`, in the order of their members.
DECLARATION_COLUMNS = (
    DeclarationRow.connector_key,
    DeclarationRow.source_kind,
    DeclarationRow.source_id,
    DeclarationRow.version,
    DeclarationRow.digest,
    DeclarationRow.raw,
    DeclarationRow.registered_at,
    DeclarationRow.current,
)
CONNECTION_COLUMNS = (
    ConnectionRow.connection_id,
    ConnectionRow.connector_key,
    ConnectionRow.source_id,
    ConnectionRow.display_name,
    ConnectionRow.status,
    ConnectionRow.created_at,
    ConnectionRow.updated_at,
    ConnectionRow.revoked_at,
)
DECLARATION, CONNECTION = listed(DECLARATION_COLUMNS), listed(CONNECTION_COLUMNS)


def stored_declaration(line: Line) -> StoredDeclaration:
    """A line of `DECLARATION_COLUMNS` as a value."""
    *members, current = line
    return StoredDeclaration(*members, current=bool(current))


def stored_connection(line: Line) -> Connection:
    """A line of `CONNECTION_COLUMNS` as a value."""
    connection_id, connector_key, source_id, display_name, status, *times = line
    return Connection(
        connection_id, connector_key, source_id, display_name, ConnectionStatus(status), *times
    )
