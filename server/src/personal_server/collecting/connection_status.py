"""Connections, paused, resumed, revoked and reactivated by their owner.

Rule: what may follow what is the table `TRANSITIONS`; a change is one transaction of the store.
Source: docs/contract/resource-server.md 14.2.
"""

from __future__ import annotations

from msgspec.structs import replace

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.texts import message
from personal_server.domain.connection import TRANSITIONS, Connection, ConnectionStatus
from personal_server.storage.ports.record_stores import ConnectionStore

OWNER_ACTIONS = ("pause", "resume", "revoke", "reactivate")


def move_connection(
    store: ConnectionStore, connection_id: str, action: str, now_ns: int
) -> Connection:
    """Pause, resume, revoke or reactivate.  Raises: ConnectionNotFound, InvalidState."""
    return store.update_connection(connection_id, lambda c: _moved(c, action, now_ns))


def _moved(connection: Connection, action: str, now_ns: int) -> Connection:
    status = TRANSITIONS.get((action, connection.status))
    if status is None:
        possible = ", ".join(possible_actions(connection.status))
        raise InvalidState(
            message(
                "A connection that is %(status)s cannot %(action)s. Possible now: %(possible)s.",
                status=connection.status.value,
                action=action,
                possible=possible or message("nothing"),
            )
        )
    revoked_at = now_ns if status is ConnectionStatus.REVOKED else None
    return replace(connection, status=status, updated_at_ns=now_ns, revoked_at_ns=revoked_at)


def possible_actions(status: ConnectionStatus) -> tuple[str, ...]:
    """What the owner may do with a connection in this status."""
    return tuple(action for action in OWNER_ACTIONS if (action, status) in TRANSITIONS)
