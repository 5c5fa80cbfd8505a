"""The successor of a grant: what moves to it, and its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.texts import message
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.grant_changes import MOST_NAME_CHARS
from personal_server.granting.holdings import Holding, show_held
from personal_server.granting.revocations import end_access
from personal_server.storage.authorization_rows import (
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    ReadingAlarmRow,
    ReadingLimitsRow,
    ReadingSpanRow,
    ReadingWordsRow,
    RequestRow,
    SubscriptionRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationWriter,
    R,
)


def succeeding_grant(reader: AuthorizationReader, row: GrantRow, replaced_id: str) -> GrantRow:
    """The row of a grant with what it has of the one that it replaces."""
    before = reader.get(GrantRow, GrantRow.grant_id.equals(replaced_id))
    if before is None:
        raise LookupError("A grant that is changed exists.")
    return replace(
        row,
        replaces=replaced_id,
        lineage=before.lineage or replaced_id,
        name=before.name,
        hold=before.hold,
        consumed_at_ns=before.consumed_at_ns,
    )


def hand_over(
    writer: AuthorizationWriter,
    replaced: Holding,
    successor_id: str,
    members: Mapping[str, str],
    expires_at_ns: int | None,
    acting: Acting,
    now_ns: int,
) -> None:
    """Move all that belongs to an access to its successor, then end it.

    Shapes: `members` are the successors of its grants, by the id of each.
    """
    old, is_package = replaced.id, replaced.kind == "mcp_package"
    for table in (TokenRow, FamilyRow, CodeRow, RequestRow):
        _move(writer, table, "package_id" if is_package else "grant_id", old, successor_id)
    of_family = FamilyRow.package_id if is_package else FamilyRow.grant_id
    ends = [FamilyRow.absolute_end_ns.to(expires_at_ns)]
    writer.change(FamilyRow, ends, of_family.equals(successor_id))
    for grant_id, next_id in members.items():
        moved = [SubscriptionRow.grant_id.to(next_id)]
        if is_package:
            moved.append(SubscriptionRow.package_id.to(successor_id))
        writer.change(SubscriptionRow, moved, SubscriptionRow.grant_id.equals(grant_id))
    for table in (ReadingLimitsRow, ReadingSpanRow, ReadingWordsRow, ReadingAlarmRow):
        _move(writer, table, "held_id", old, successor_id)
    end_access(writer, old, "replaced", acting, now_ns)


def _move(writer: AuthorizationWriter, table: type[R], column: str, old: str, new: str) -> None:
    held_id = table.table.column(column)
    writer.change(table, [held_id.to(new)], held_id.equals(old))


def rename_access(
    writer: AuthorizationWriter, held_id: str, name: str, acting: Acting, now_ns: int
) -> bool:
    """Call a grant or package as its owner likes, or as its app again; whether there is one.

    Raises: InvalidRequest.
    """
    holding = show_held(writer, held_id, now_ns)
    if holding is None:
        return False
    new_name = name.strip() or None
    if len(new_name or "") > MOST_NAME_CHARS:
        raise InvalidRequest(
            message("A name can have at most %(most)s characters.", most=MOST_NAME_CHARS),
            param="name",
        )
    if holding.kind == "mcp_package":
        writer.change(
            PackageRow, [PackageRow.name.to(new_name)], PackageRow.package_id.equals(held_id)
        )
        subject = Subject(holding.client_id, package_id=held_id)
    else:
        writer.change(GrantRow, [GrantRow.name.to(new_name)], GrantRow.grant_id.equals(held_id))
        subject = Subject(holding.client_id, held_id)
    audit(writer, "grant.renamed", acting, now_ns, subject)
    return True
