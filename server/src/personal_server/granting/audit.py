"""The audit trail: what happened, who did it, to what; in the transaction of the change.

Rule: details are enums, counts and ids; never a secret, a record value or another's words.
Source: docs/contract/authorization-server.md 16.
"""

from __future__ import annotations

import msgspec

from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.ports.authorization_store import AuthorizationWriter


class Acting(msgspec.Struct, frozen=True):
    """Who acts: `owner`, `client`, `server`, `local_cli` or `introspection_client`, and whence.

    `user` is the operating-system user of a local command.
    """

    actor: str
    request_id: str | None = None
    address: str | None = None
    user: str | None = None
    user_agent: str | None = None


SERVER = Acting("server")
METADATA_CHANGED = "client.metadata_changed"
"""A client says something else of itself; the detail `changed` lists what."""


class Subject(msgspec.Struct, frozen=True):
    """What an event is about."""

    client_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None


NOTHING = Subject()


def audit(
    writer: AuthorizationWriter,
    event: str,
    acting: Acting,
    now_ns: int,
    subject: Subject = NOTHING,
    **detail: object,
) -> None:
    """Append one event."""
    if acting.user is not None:
        detail["user"] = acting.user
    writer.insert(
        AuditRow(
            event=event,
            at_ns=now_ns,
            actor=acting.actor,
            client_id=subject.client_id,
            grant_id=subject.grant_id,
            package_id=subject.package_id,
            request_id=acting.request_id,
            address=acting.address,
            detail={name: value for name, value in detail.items() if value is not None},
        )
    )
