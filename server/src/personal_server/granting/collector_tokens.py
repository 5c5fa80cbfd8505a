"""Collector tokens: each lets one collector write to one connection, and nothing else.

Rule: such a token reads no record and declares nothing; it ends when the owner ends it, since a
collector is forgotten about for years.  It is shown once, when it is made.
Source: docs/contract/resource-server.md 3, 13; docs/contract/authorization-server.md 14.
"""

from __future__ import annotations

import msgspec

from pdpp_kernel.errors import NotFound
from pdpp_kernel.values import MAX_INTEGER
from personal_server.consent.credentials import (
    ACCESS_TOKEN,
    RandomBytes,
    new_secret,
    secret_hash,
    token_reference,
)
from personal_server.domain.authority import TokenKind
from personal_server.granting.audit import Acting, audit
from personal_server.granting.transitions import revoke
from personal_server.storage.authorization_rows import TokenRow
from personal_server.storage.ports.authorization_store import AuthorizationStore

COLLECTOR = TokenKind.COLLECTOR.value
SCOPE = "pdpp:collect"


class CollectorToken(msgspec.Struct, frozen=True):
    """A collector's access, without its secret."""

    reference: str
    connection_id: str
    issued_at_ns: int
    last_used_at_ns: int | None


def issue_collector_token(
    store: AuthorizationStore,
    origin: str,
    connection_id: str,
    acting: Acting,
    random_bytes: RandomBytes,
    now_ns: int,
) -> str:
    """A new token for a connection, in clear; the caller knows that the connection exists."""
    token = new_secret(ACCESS_TOKEN, random_bytes)
    with store.write() as writer:
        writer.insert(
            TokenRow(
                token_hash=secret_hash(token),
                kind=COLLECTOR,
                client_id=COLLECTOR,
                connection_id=connection_id,
                origin=origin,
                resource=origin,
                scope=SCOPE,
                issued_at_ns=now_ns,
                expires_at_ns=MAX_INTEGER,
            )
        )
        audit(writer, "collector_token.issued", acting, now_ns, connection_id=connection_id)
    return token


def collector_tokens(store: AuthorizationStore) -> tuple[CollectorToken, ...]:
    """Those that were not ended, oldest first."""
    with store.read() as reader:
        rows = reader.rows(
            TokenRow, TokenRow.kind.equals(COLLECTOR), TokenRow.revoked_at_ns.equals(None)
        )
    return tuple(
        CollectorToken(
            reference=token_reference(row.token_hash),
            connection_id=row.connection_id or "",
            issued_at_ns=row.issued_at_ns,
            last_used_at_ns=row.last_used_at_ns,
        )
        for row in sorted(rows, key=lambda row: row.issued_at_ns)
    )


def revoke_collector_token(
    store: AuthorizationStore, reference: str, acting: Acting, now_ns: int
) -> None:
    """End one by its reference.  Raises: NotFound."""
    with store.write() as writer:
        rows = writer.rows(
            TokenRow, TokenRow.kind.equals(COLLECTOR), TokenRow.revoked_at_ns.equals(None)
        )
        tokens = [row for row in rows if token_reference(row.token_hash) == reference]
        if not tokens:
            raise NotFound("There is no such collector token.", param="reference")
        for row in tokens:
            revoke(writer, TokenRow, "owner", now_ns, TokenRow.token_hash.equals(row.token_hash))
            audit(
                writer,
                "collector_token.revoked",
                acting,
                now_ns,
                connection_id=row.connection_id,
            )
