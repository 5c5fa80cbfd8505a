"""Pausing access: a grant waits and stays what it was, until its owner lets it go on.

Rule: a pause ends no credential and no grant.  After a restore every living grant waits for its
owner, who alone knows what was ended since the backup, and every token is dead: a spent one may be
back as if it were new.
Source: docs/contract/authorization-server.md 11.4; docs/decisions.md C35.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from personal_server.consent import lifecycle
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.revocations import end_access
from personal_server.granting.transitions import close_request, revoke, transition
from personal_server.storage.authorization_rows import (
    CodeRow,
    FamilyRow,
    GrantRow,
    OwnerLinkRow,
    OwnerSessionRow,
    PackageMemberRow,
    PackageRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import AuthorizationWriter


class EndedAccess(msgspec.Struct, frozen=True):
    """A grant or package that was ended."""

    held_id: str
    reason: str
    at_ns: int


def pause_access(
    writer: AuthorizationWriter, held_id: str, acting: Acting, now_ns: int
) -> int | None:
    """Let a grant, or every member of a package, wait; how many, `None` if there is no such."""
    return _moved(writer, held_id, ("none",), "owner", acting, now_ns)


def hold_after_alarm(
    writer: AuthorizationWriter, held_id: str, acting: Acting, now_ns: int
) -> int | None:
    """Let a grant, or every member of a package, wait after something unusual was read."""
    return _moved(writer, held_id, ("none",), "alarm", acting, now_ns)


def resume_access(
    writer: AuthorizationWriter, held_id: str, acting: Acting, now_ns: int
) -> int | None:
    """Let it go on, whyever it waited; how many, `None` if there is no such."""
    return _moved(writer, held_id, ("owner", "alarm", "restored"), "none", acting, now_ns)


def close_after_restore(
    writer: AuthorizationWriter, ended_since: Iterable[EndedAccess], acting: Acting, now_ns: int
) -> int:
    """No credential of a restored store is good, no request open; how many grants wait.

    Shapes: `ended_since` is what was ended after the backup was made, as far as that is known.
    """
    for ended in ended_since:
        end_access(writer, ended.held_id, ended.reason, acting, ended.at_ns)
    for table in (TokenRow, FamilyRow):
        revoke(writer, table, "restored", now_ns)
    transition(writer, CodeRow, "issued", "expired", now_ns)
    transition(writer, RequestRow, "approved", "expired", now_ns)
    close_request(writer, "expired", now_ns)
    writer.change(OwnerLinkRow, [OwnerLinkRow.used_at_ns.to(now_ns)])
    writer.change(OwnerSessionRow, [OwnerSessionRow.ended_at_ns.to(now_ns)])
    waiting = 0
    for row in writer.rows(GrantRow, GrantRow.revoked_at_ns.equals(None)):
        waiting += _move(writer, row, ("none", "owner", "alarm"), "restored", acting, now_ns)
    return waiting


def _moved(
    writer: AuthorizationWriter,
    held_id: str,
    states: Iterable[str],
    to: str,
    acting: Acting,
    now_ns: int,
) -> int | None:
    rows = _grants_of(writer, held_id)
    if rows is None:
        return None
    return sum(_move(writer, row, tuple(states), to, acting, now_ns) for row in rows)


def _grants_of(writer: AuthorizationWriter, held_id: str) -> list[GrantRow] | None:
    if writer.get(PackageRow, PackageRow.package_id.equals(held_id)) is not None:
        members = writer.rows(PackageMemberRow, PackageMemberRow.package_id.equals(held_id))
        grants = [
            writer.get(GrantRow, GrantRow.grant_id.equals(member.grant_id)) for member in members
        ]
    else:
        grants = [writer.get(GrantRow, GrantRow.grant_id.equals(held_id))]
    rows = [row for row in grants if row is not None]
    return rows or None


def _move(
    writer: AuthorizationWriter,
    row: GrantRow,
    states: tuple[str, ...],
    to: str,
    acting: Acting,
    now_ns: int,
) -> int:
    conditions = (GrantRow.grant_id.equals(row.grant_id), GrantRow.revoked_at_ns.equals(None))
    moved = sum(
        transition(writer, GrantRow, state, to, now_ns, *conditions, life=lifecycle.HOLD)
        for state in states
    )
    if moved:
        event = "grant.resumed" if to == "none" else "grant.paused"
        subject = Subject(row.client_id, row.grant_id)
        audit(writer, event, acting, now_ns, subject, reason=to if to != "none" else None)
    return moved
