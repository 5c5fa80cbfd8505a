"""A schema document as rows: one stream of one connector with the connections that share it.

Source: MCP adapter contract 3.6, 10.1; resource-server contract 6.3, 6.4.
"""

from dataclasses import dataclass

from personal_server.rs_client.json_values import Json, as_text, is_object, objects_in
from personal_server.rs_client.normalize import connection_of, connector_key_of


@dataclass(frozen=True, slots=True)
class Connection:
    """One configured account."""

    connection_id: str
    display_name: str | None = None
    grant_id: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """One stream of one connector; connections are its own or the connector's shared ones."""

    row: Json
    connector: Json
    connector_key: str | None
    connections: tuple[Connection, ...]

    @property
    def name(self) -> str:
        """The stream's name."""
        return as_text(self.row.get("name")) or as_text(self.row.get("stream")) or ""


def catalog_rows(catalog: Json) -> list[CatalogRow]:
    """Every stream row, grouped under connectors or standing at the top."""
    found: list[CatalogRow] = []
    for connector in objects_in(catalog.get("connectors")):
        found += [_row(row, connector) for row in objects_in(connector.get("streams"))]
    return found or [_row(row, row) for row in objects_in(catalog.get("streams"))]


def _row(row: Json, connector: Json) -> CatalogRow:
    own = connections_in(row) or connections_in(connector)
    key = connector_key_of(row) or connector_key_of(connector)
    return CatalogRow(row, connector, key, own)


def connections_in(holder: Json) -> tuple[Connection, ...]:
    """The connections a row or connector lists, in either spelling."""
    listed = [
        Connection(connection, as_text(item.get("display_name")), as_text(item.get("grant_id")))
        for item in objects_in(holder.get("granted_connections"))
        if (connection := connection_of(item))
    ]
    if not listed and (single := connection_of(holder)):
        label, grant = as_text(holder.get("display_name")), as_text(holder.get("grant_id"))
        return (Connection(single, label, grant),)
    return tuple(listed)


def rows_of_stream(
    catalog: Json, stream: str, connection_id: str | None = None
) -> list[CatalogRow]:
    """Rows of one stream, and of one connection when it is given."""
    return [
        row
        for row in catalog_rows(catalog)
        if row.name == stream and (connection_id is None or covers(row, connection_id))
    ]


def covers(row: CatalogRow, connection_id: str) -> bool:
    """Whether a row is reachable on a connection; a row that names none may be."""
    return not row.connections or any(c.connection_id == connection_id for c in row.connections)


def all_connections(catalog: Json) -> dict[str, tuple[Connection, str | None]]:
    """Every connection once, with its connector's key, in order of appearance."""
    found: dict[str, tuple[Connection, str | None]] = {}
    for connector in objects_in(catalog.get("connectors")):
        for connection in connections_in(connector):
            found.setdefault(connection.connection_id, (connection, connector_key_of(connector)))
    for row in catalog_rows(catalog):
        for connection in row.connections:
            found.setdefault(connection.connection_id, (connection, row.connector_key))
    return found


def unavailable_in(catalog: Json) -> list[Json]:
    """Connections that cannot be read."""
    listed = catalog.get("unavailable_connections")
    if listed is None and is_object(catalog.get("meta")):
        listed = catalog["meta"].get("unavailable_connections")
    return objects_in(listed)
