"""Ending grants, packages, tokens and families.

Rule: ending is final and idempotent, keeps the first time and reason, works on grants that cannot
be read, and bites on the next request, because tokens are judged through what they stand for.
Source: docs/contract/authorization-server.md 10.2, 10.3, 11.1, 11.2.
"""

from __future__ import annotations

import msgspec

from personal_server.consent.credentials import secret_hash
from personal_server.consent.selections import SINGLE_USE
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.transitions import revoke
from personal_server.storage.authorization_rows import (
    ClientRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    RefreshTokenRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
)
from personal_server.storage.tables import ColumnCondition

_GIVEN_BACK = "client_disconnected"


class Ended(msgspec.Struct, frozen=True):
    """What was ended: `kind` is `grant` or `package`.  `revoked_at_ns` is the first end.

    `expired` is whether the clock had ended it before; then it stays expired.
    """

    kind: str
    id: str
    revoked_at_ns: int | None
    expired: bool


def end_access(
    writer: AuthorizationWriter, held_id: str, reason: str, acting: Acting, now_ns: int
) -> Ended | None:
    """End a grant or package by id; `None` if there is none."""
    if writer.get(PackageRow, PackageRow.package_id.equals(held_id)) is not None:
        return end_package(writer, held_id, reason, acting, now_ns)
    if writer.get(GrantRow, GrantRow.grant_id.equals(held_id)) is not None:
        return end_grant(writer, held_id, reason, acting, now_ns)
    return None


def end_decided(
    writer: AuthorizationWriter,
    row: CodeRow | RequestRow,
    reason: str,
    acting: Acting,
    now_ns: int,
) -> None:
    """End what the decision on this request, or behind this code, made; an owner's made nothing."""
    held_id = row.package_id or row.grant_id
    if held_id is not None:
        end_access(writer, held_id, reason, acting, now_ns)


def end_grant(
    writer: AuthorizationWriter, grant_id: str, reason: str, acting: Acting, now_ns: int
) -> Ended | None:
    """End one grant and the family on it.  A member of a package ends alone."""
    row = writer.get(GrantRow, GrantRow.grant_id.equals(grant_id))
    if row is None:
        return None
    if row.expires_at_ns is not None and row.expires_at_ns <= now_ns and row.reason is None:
        return Ended("grant", grant_id, None, expired=True)
    if revoke(writer, GrantRow, reason, now_ns, GrantRow.grant_id.equals(grant_id)):
        end_families(writer, reason, now_ns, FamilyRow.grant_id.equals(grant_id))
        subject = Subject(client_id=row.client_id, grant_id=grant_id)
        audit(writer, "grant.revoked", acting, now_ns, subject, reason=reason)
    return Ended("grant", grant_id, row.revoked_at_ns or now_ns, expired=False)


def end_package(
    writer: AuthorizationWriter, package_id: str, reason: str, acting: Acting, now_ns: int
) -> Ended | None:
    """End a package, every member and the family on it, with one event."""
    row = writer.get(PackageRow, PackageRow.package_id.equals(package_id))
    if row is None:
        return None
    if revoke(writer, PackageRow, reason, now_ns, PackageRow.package_id.equals(package_id)):
        members = [
            m.grant_id
            for m in writer.rows(PackageMemberRow, PackageMemberRow.package_id.equals(package_id))
        ]
        ended = [
            member
            for member in members
            if revoke(writer, GrantRow, reason, now_ns, GrantRow.grant_id.equals(member))
        ]
        end_families(writer, reason, now_ns, FamilyRow.package_id.equals(package_id))
        subject = Subject(client_id=row.client_id, package_id=package_id)
        audit(writer, "package.revoked", acting, now_ns, subject, reason=reason, grant_ids=ended)
    return Ended("package", package_id, row.revoked_at_ns or now_ns, expired=False)


def end_families(
    writer: AuthorizationWriter, reason: str, now_ns: int, of: ColumnCondition[FamilyRow]
) -> None:
    """End the families of a grant, package or client; their tokens are judged through them."""
    revoke(writer, FamilyRow, reason, now_ns, of)


def end_family(
    writer: AuthorizationWriter, family: FamilyRow, reason: str, acting: Acting, now_ns: int
) -> None:
    """End a family, its access tokens, and what stood behind it."""
    end_families(writer, reason, now_ns, FamilyRow.family_id.equals(family.family_id))
    revoke(writer, TokenRow, reason, now_ns, TokenRow.family_id.equals(family.family_id))
    if family.package_id is not None:
        end_package(writer, family.package_id, reason, acting, now_ns)
    if family.grant_id is not None:
        end_grant(writer, family.grant_id, reason, acting, now_ns)


def end_client_access(
    writer: AuthorizationWriter, client_id: str, reason: str, acting: Acting, now_ns: int
) -> int:
    """End everything a client holds; how many grants and packages that were."""
    packages = writer.rows(
        PackageRow, PackageRow.client_id.equals(client_id), PackageRow.revoked_at_ns.equals(None)
    )
    for package in packages:
        end_package(writer, package.package_id, reason, acting, now_ns)
    grants = writer.rows(
        GrantRow, GrantRow.client_id.equals(client_id), GrantRow.revoked_at_ns.equals(None)
    )
    for grant in grants:
        end_grant(writer, grant.grant_id, reason, acting, now_ns)
    end_families(writer, reason, now_ns, FamilyRow.client_id.equals(client_id))
    return len(packages) + len(grants)


def block_client(writer: AuthorizationWriter, client_ref: str, acting: Acting, now_ns: int) -> bool:
    """Refuse a client from now on and end everything it holds; whether there is such a client."""
    row = writer.get(ClientRow, ClientRow.client_ref.equals(client_ref))
    if row is None:
        return False
    writer.change(
        ClientRow,
        [ClientRow.blocked_at_ns.to(now_ns)],
        ClientRow.client_ref.equals(client_ref),
        ClientRow.blocked_at_ns.equals(None),
    )
    end_client_access(writer, row.client_id, "client_blocked", acting, now_ns)
    audit(writer, "client.blocked", acting, now_ns, Subject(client_id=row.client_id))
    return True


def unblock_client(
    writer: AuthorizationWriter, client_ref: str, acting: Acting, now_ns: int
) -> bool:
    """Let a client ask again; whether there is such a client."""
    row = writer.get(ClientRow, ClientRow.client_ref.equals(client_ref))
    if row is None:
        return False
    writer.change(
        ClientRow, [ClientRow.blocked_at_ns.to(None)], ClientRow.client_ref.equals(client_ref)
    )
    audit(writer, "client.unblocked", acting, now_ns, Subject(client_id=row.client_id))
    return True


def disconnect(
    store: AuthorizationStore, token: str, client_id: str, acting: Acting, now_ns: int
) -> None:
    """End what a token stands for that its client gives back (RFC 7009).

    Only the client's own token has an effect, and the answer never tells which it was.
    """
    token_hash = secret_hash(token)
    with store.write() as writer:
        refresh = writer.get(RefreshTokenRow, RefreshTokenRow.token_hash.equals(token_hash))
        if refresh is not None:
            family = writer.get(FamilyRow, FamilyRow.family_id.equals(refresh.family_id))
            if family is not None and family.client_id == client_id:
                end_family(writer, family, _GIVEN_BACK, acting, now_ns)
            return
        access = writer.get(TokenRow, TokenRow.token_hash.equals(token_hash))
        if access is not None and access.client_id == client_id:
            _end_access_token(writer, access, acting, now_ns)


def _end_access_token(
    writer: AuthorizationWriter, row: TokenRow, acting: Acting, now_ns: int
) -> None:
    if not revoke(
        writer, TokenRow, _GIVEN_BACK, now_ns, TokenRow.token_hash.equals(row.token_hash)
    ):
        return
    subject = Subject(row.client_id, row.grant_id, row.package_id)
    audit(writer, "token.revoked", acting, now_ns, subject)
    if row.family_id is not None or _mode(writer, row) != SINGLE_USE:
        return
    if row.package_id is not None:
        end_package(writer, row.package_id, _GIVEN_BACK, acting, now_ns)
    if row.grant_id is not None:
        end_grant(writer, row.grant_id, _GIVEN_BACK, acting, now_ns)


def _mode(writer: AuthorizationWriter, row: TokenRow) -> str | None:
    grant_id = row.grant_id
    if row.package_id is not None:
        members = writer.rows(
            PackageMemberRow, PackageMemberRow.package_id.equals(row.package_id), limit=1
        )
        grant_id = members[0].grant_id if members else None
    grant = None if grant_id is None else writer.get(GrantRow, GrantRow.grant_id.equals(grant_id))
    return None if grant is None else grant.access_mode
