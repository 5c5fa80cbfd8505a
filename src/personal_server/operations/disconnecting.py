"""A client gives its token back (RFC 7009).

Rule: only the client's own token has an effect, and the answer never tells which it was.
Source: AS contract 10.2.
"""

from __future__ import annotations

from personal_server.consent.credentials import secret_hash
from personal_server.consent.selections import SINGLE_USE
from personal_server.operations.auditing import Acting, Subject, audit
from personal_server.operations.revoking import end_family, end_grant, end_package
from personal_server.storage.authorization import (
    AuthorizationStore,
    AuthorizationWriter,
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    RefreshTokenRow,
    TokenRow,
)

REASON = "client_disconnected"


def disconnect(
    store: AuthorizationStore, token: str, client_id: str, acting: Acting, now_ns: int
) -> None:
    """End what the token of this client stands for; do nothing for any other token."""
    token_hash = secret_hash(token)
    with store.write() as writer:
        refresh = writer.get(RefreshTokenRow, token_hash=token_hash)
        if refresh is not None:
            family = writer.get(FamilyRow, family_id=refresh.family_id)
            if family is not None and family.client_id == client_id:
                end_family(writer, family, REASON, acting, now_ns)
            return
        access = writer.get(TokenRow, token_hash=token_hash)
        if access is not None and access.client_id == client_id:
            _end_access_token(writer, access, acting, now_ns)


def _end_access_token(
    writer: AuthorizationWriter, row: TokenRow, acting: Acting, now_ns: int
) -> None:
    to = {"revoked_at_ns": now_ns, "reason": REASON}
    if not writer.change(TokenRow, to, token_hash=row.token_hash, revoked_at_ns=None):
        return
    subject = Subject(row.client_id, row.grant_id, row.package_id)
    audit(writer, "token.revoked", acting, now_ns, subject)
    if row.family_id is not None or _mode(writer, row) != SINGLE_USE:
        return
    if row.package_id is not None:
        end_package(writer, row.package_id, REASON, acting, now_ns)
    if row.grant_id is not None:
        end_grant(writer, row.grant_id, REASON, acting, now_ns)


def _mode(writer: AuthorizationWriter, row: TokenRow) -> str | None:
    grant_id = row.grant_id
    if row.package_id is not None:
        members = writer.rows(PackageMemberRow, package_id=row.package_id, limit=1)
        grant_id = members[0].grant_id if members else None
    grant = None if grant_id is None else writer.get(GrantRow, grant_id=grant_id)
    return None if grant is None else grant.access_mode
