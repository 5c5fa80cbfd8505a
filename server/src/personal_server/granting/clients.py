"""Clients in the store: registered, making room, purged; and resource servers that run apart.

Rule: the secret of a resource server is shown once, when it is made.
Source: docs/contract/authorization-server.md 3.2, 10.5.
"""

from __future__ import annotations

from pdpp_kernel.errors import InvalidState, RateLimitExceeded
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.consent.client_registration import (
    CHECK,
    DOCUMENT,
    DYNAMIC,
    Registration,
    local_client_id,
)
from personal_server.consent.credentials import (
    CLIENT,
    CLIENT_REFERENCE,
    INTROSPECTION_SECRET,
    RandomBytes,
    new_id,
    new_secret,
    secret_hash,
)
from personal_server.granting.audit import SERVER, Acting, Subject, audit
from personal_server.granting.holdings import active_held, list_held
from personal_server.granting.transitions import close_request
from personal_server.storage.authorization_rows import ClientRow, IntrospectionClientRow, RequestRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
    HeldQuery,
)

MAX_NEVER_APPROVED = 1_000
ROOM_AGE_NS = 3_600 * NANOSECONDS
CHECK_NS = 600 * NANOSECONDS
UNUSED_NS = 7 * DAY_NANOSECONDS
ENDED_NS = 90 * DAY_NANOSECONDS


class IntrospectionCredentials(Unprinted, frozen=True):
    """What the operator copies to the other server, now or never."""

    caller_id: str
    secret: str


def register_client(
    store: AuthorizationStore,
    registration: Registration,
    acting: Acting,
    random_bytes: RandomBytes,
    now_ns: int,
) -> str:
    """The id of a new dynamic client.  Raises: RateLimitExceeded when the table is full."""
    row = ClientRow(
        client_id=new_id(CLIENT, random_bytes),
        client_ref=new_id(CLIENT_REFERENCE, random_bytes),
        registration=CHECK if registration.is_check else DYNAMIC,
        name=registration.name,
        display=dict(registration.display),
        redirect_uris=registration.redirect_uris,
        grant_types=registration.grant_types,
        dpop_bound=registration.dpop_bound,
        registered_at_ns=now_ns,
    )
    with store.write() as writer:
        _make_room(writer, now_ns)
        writer.insert(row)
        audit(writer, "client.registered", acting, now_ns, Subject(row.client_id))
    return row.client_id


def forget_check(store: AuthorizationStore, client_id: str, now_ns: int) -> None:
    """A client that only checked has its answer: nothing is left of it but two lines of audit."""
    with store.write() as writer:
        row = writer.get(
            ClientRow, ClientRow.client_id.equals(client_id), ClientRow.registration.equals(CHECK)
        )
        if row is not None:
            _purge(writer, row, now_ns)


def purge_clients(writer: AuthorizationWriter, now_ns: int) -> int:
    """Forget clients that came by themselves and were never used, or whose access ended long ago,
    and checks that were cut off; how many.
    """
    checks = writer.rows(
        ClientRow,
        ClientRow.registration.equals(CHECK),
        ClientRow.registered_at_ns.at_most(now_ns - CHECK_NS),
    )
    registered = [
        row
        for registration in (DYNAMIC, DOCUMENT)
        for row in writer.rows(
            ClientRow,
            ClientRow.registration.equals(registration),
            ClientRow.blocked_at_ns.equals(None),
        )
    ]
    approved = [row for row in registered if row.first_approved_at_ns is not None]
    unused = [
        row
        for row in registered
        if row.first_approved_at_ns is None and row.registered_at_ns <= now_ns - UNUSED_NS
    ]
    ended = [row for row in approved if _ended_long_ago(writer, row.client_id, now_ns)]
    ids = (*unused, *ended, *checks)
    for row in ids:
        _purge(writer, row, now_ns)
    return len(ids)


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
        if (
            writer.get(IntrospectionClientRow, IntrospectionClientRow.caller_id.equals(caller_id))
            is not None
        ):
            raise InvalidState(
                "An introspection client with that name exists already. Choose another name."
            )
        writer.insert(row)
    return IntrospectionCredentials(caller_id, secret)


def _ended_long_ago(writer: AuthorizationWriter, client_id: str, now_ns: int) -> bool:
    if active_held(writer, client_id, now_ns):
        return False
    ends = [
        holding.revoked_at_ns or holding.expires_at_ns or holding.issued_at_ns
        for holding in list_held(writer, HeldQuery(now_ns, client_id=client_id))
    ]
    return max(ends, default=now_ns) <= now_ns - ENDED_NS


def _make_room(writer: AuthorizationWriter, now_ns: int) -> None:
    never_approved = (
        ClientRow.registration.equals(DYNAMIC),
        ClientRow.first_approved_at_ns.equals(None),
    )
    if writer.count(ClientRow, *never_approved) < MAX_NEVER_APPROVED:
        return
    oldest = writer.rows(
        ClientRow,
        ClientRow.registration.equals(DYNAMIC),
        ClientRow.first_approved_at_ns.equals(None),
        ClientRow.blocked_at_ns.equals(None),
        ClientRow.registered_at_ns.at_most(now_ns - ROOM_AGE_NS),
        order=ClientRow.registered_at_ns,
        limit=1,
    )
    if not oldest:
        raise RateLimitExceeded(
            "Too many apps registered just now. Try again later.", retry_after_seconds=3_600
        )
    _purge(writer, oldest[0], now_ns)


def _purge(writer: AuthorizationWriter, row: ClientRow, now_ns: int) -> None:
    close_request(writer, "expired", now_ns, RequestRow.client_id.equals(row.client_id))
    writer.delete(ClientRow, ClientRow.client_id.equals(row.client_id))
    audit(writer, "client.purged", SERVER, now_ns, Subject(row.client_id))
