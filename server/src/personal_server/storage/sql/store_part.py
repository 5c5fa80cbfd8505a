"""What the parts of a record store share: database, subject, and the connection written to."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel import persons
from pdpp_kernel.errors import ConnectionNotFound, ConnectionNotWritable
from personal_server.domain.connection import ConnectionStatus
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import ConnectionRow
from personal_server.storage.sql.statements import select

_FIND_CONNECTION = select(
    ConnectionRow,
    ConnectionRow.subject_id,
    ConnectionRow.connection_id,
    columns=(ConnectionRow.connector_key, ConnectionRow.status),
)


class StorePart:
    """A database, whose records they are, and where blobs lie."""

    def __init__(self, database: Database, subject_id: str, blob_directory: Path) -> None:
        self._database = database
        self._blob_directory = blob_directory
        self.subject_id = subject_id


def require(session: Session, subject_id: str, connection_id: str) -> tuple[str, str]:
    """Connector key and status of a connection.  Raises ConnectionNotFound."""
    line = session.first(_FIND_CONNECTION, (subject_id, connection_id))
    if line is None:
        raise ConnectionNotFound(
            "There is no account with this connection_id.", param="connection_id"
        )
    return (line[0], line[1])


def writable(session: Session, subject_id: str, connection_id: str) -> str:
    """The connector key of a connection that takes records.

    Raises: ConnectionNotFound, ConnectionNotWritable when revoked or of persons.
    """
    connector_key, status = require(session, subject_id, connection_id)
    if status == ConnectionStatus.REVOKED:
        raise ConnectionNotWritable("The owner blocked this account.")
    if connector_key == persons.CONNECTOR_KEY:
        raise ConnectionNotWritable(
            "The server makes the list of persons from your other records, so "
            "nothing can be written here."
        )
    return connector_key
