"""Resource servers that run apart: their ids and secrets for introspection.

Rule: a secret is shown once, when it is made.  Source: AS contract 10.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from personal_server.consent.client_registration import local_client_id
from personal_server.consent.credentials import (
    INTROSPECTION_SECRET,
    RandomBytes,
    new_secret,
    secret_hash,
)
from personal_server.errors import InvalidState
from personal_server.storage.authorization import AuthorizationStore, IntrospectionClientRow


@dataclass(frozen=True, slots=True)
class IntrospectionCredentials:
    """What the operator copies to the other server, now or never."""

    caller_id: str
    secret: str = field(repr=False)


def add_introspection_client(
    store: AuthorizationStore, name: str, random_bytes: RandomBytes, now_ns: int
) -> IntrospectionCredentials:
    """Credentials of a new caller, named after what it is called.

    Raises: InvalidState if that name is taken.
    """
    caller_id = local_client_id(name).replace("local_", "rs_", 1)
    secret = new_secret(INTROSPECTION_SECRET, random_bytes)
    row = IntrospectionClientRow(
        caller_id=caller_id, secret_hash=secret_hash(secret), name=name, created_at_ns=now_ns
    )
    with store.write() as writer:
        if writer.get(IntrospectionClientRow, caller_id=caller_id) is not None:
            raise InvalidState("There is an introspection client of that name. Choose another.")
        writer.insert(row)
    return IntrospectionCredentials(caller_id, secret)
