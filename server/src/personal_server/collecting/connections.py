"""Connections, made and named by their owner; a change is one transaction of the store.

Source: docs/contract/resource-server.md 14.2.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from pdpp_kernel.errors import InvalidRequest, NotFound
from pdpp_kernel.texts import message
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import StoredDeclaration
from personal_server.storage.ports.record_stores import ConnectionStore

MAX_NAME_CODE_POINTS = 200
ID_BYTES = 12


def create_connection(
    store: ConnectionStore,
    declaration: StoredDeclaration | None,
    display_name: str | None,
    now_ns: int,
    random_bytes: Callable[[int], bytes],
) -> Connection:
    """A new connection of a declared source, in status `draft`.

    Raises: NotFound (unknown connector), InvalidRequest (name).
    """
    if declaration is None:
        raise NotFound(
            "This server does not know that source. Declare the source first.",
            param="connector_key",
        )
    connection = Connection(
        connection_id=f"cin_{random_bytes(ID_BYTES).hex()}",
        connector_key=declaration.connector_key,
        source_id=declaration.source_id,
        display_name=checked_name(display_name),
        status=ConnectionStatus.DRAFT,
        created_at_ns=now_ns,
        updated_at_ns=now_ns,
    )
    store.add_connection(connection)
    return connection


def rename_connection(
    store: ConnectionStore, connection_id: str, display_name: str | None, now_ns: int
) -> Connection:
    """Another name, or none.  Raises: ConnectionNotFound, InvalidRequest."""
    name = checked_name(display_name)
    return store.update_connection(
        connection_id, lambda c: replace(c, display_name=name, updated_at_ns=now_ns)
    )


def checked_name(display_name: str | None) -> str | None:
    """A trimmed name of 1 to 200 characters, or none.  Raises: InvalidRequest."""
    if display_name is None:
        return None
    name = display_name.strip()
    if not 1 <= len(name) <= MAX_NAME_CODE_POINTS:
        raise InvalidRequest(
            message(
                "An account name has 1 to %(most)s characters, or is null.",
                most=MAX_NAME_CODE_POINTS,
            ),
            param="display_name",
        )
    return name
