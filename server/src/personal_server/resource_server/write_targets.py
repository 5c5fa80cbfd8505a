"""The target of a write: which connection, which declared stream.

Source: docs/contract/resource-server.md 13.
"""

from __future__ import annotations

from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import (
    AmbiguousConnection,
    ConnectionNotFound,
    ConnectionNotWritable,
    NotFound,
)
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.collecting.chosen_connection import write_target
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.web.parameters import Parameter
from personal_server.web.requests import Request

CONNECTION_TARGET = (
    Parameter("connection_id", "The connection.", empty_is_absent=True),
    Parameter(
        "connector_instance_id",
        "Deprecated spelling of `connection_id`.",
        empty_is_absent=True,
        alias_of="connection_id",
    ),
)
TARGET = (
    *CONNECTION_TARGET,
    Parameter(
        "connector_id",
        "Instead: a connector with exactly one connection that is not revoked.",
        empty_is_absent=True,
    ),
)
TARGET_ERRORS = (ConnectionNotFound, AmbiguousConnection)


def target_of(request: Request, snapshot: ReadSnapshot, connector: str | None = None) -> Connection:
    """The connection a request names in its query; `connector` if the path names one.

    For a collector it is its own, which it need not name; others do not exist for it.
    Raises: InvalidRequest, ConnectionNotFound, AmbiguousConnection.
    """
    named = request.parameters.texts.get("connector_id") if connector is None else connector
    own = request.authority.collects_for
    connection_id = request.parameters.texts.get("connection_id") or own
    if own is not None and connection_id != own:
        raise ConnectionNotFound(
            "This token can only write to another account.", param="connection_id"
        )
    return write_target(snapshot, connection_id, named)


def declaration_of(
    snapshot: ReadSnapshot, known: KnownDeclarations, connection: Connection
) -> SourceDeclaration | None:
    """The current declaration of a connection's source."""
    for stored in snapshot.declarations():
        if stored.connector_key == connection.connector_key:
            return known.one(stored)
    return None


def declared_stream(declaration: SourceDeclaration | None, stream: str, param: str) -> Stream:
    """A stream that the source declares now.  Raises: NotFound."""
    found = None if declaration is None else declaration.streams.get(stream)
    if found is None:
        raise NotFound("The source has no such stream.", param=param)
    return found


def check_writable(connection: Connection) -> None:
    """Raise: ConnectionNotWritable."""
    if connection.status is ConnectionStatus.REVOKED:
        raise ConnectionNotWritable(
            ("The owner blocked this account. The owner can unblock it before you write."),
            param="connection_id",
        )
