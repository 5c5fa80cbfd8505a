"""Changes of what was given: a grant or package, and the successor that takes its place.

Rule: a grant stays what it was; a change is a decision like the first one, and its successor has
all that belonged to the one before: tokens, families, codes, subscriptions, limits and what was
read today.  All of it moves in the transaction of the decision, so nobody sees half a change.
Source: docs/contract/authorization-server.md 11.6; docs/decisions.md C35.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson

from pdpp_kernel.errors import InvalidRequest, NotFound
from pdpp_kernel.oauth_errors import RequestClosed
from pdpp_kernel.texts import message
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent import lifecycle
from personal_server.consent.credentials import REQUEST, RandomBytes, new_id
from personal_server.consent.selections import Selection
from personal_server.consent.successors import change_selections
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.holdings import Holding, show_held, successor_of
from personal_server.granting.revocations import end_access
from personal_server.storage.authorization import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    R,
    ReadingAlarmRow,
    ReadingLimitsRow,
    ReadingSpanRow,
    ReadingWordsRow,
    RequestRow,
    ReviewArtifactRow,
    SubscriptionRow,
    TokenRow,
)

CHANGE = "change"
"""The flow in which the owner changes an access."""
CHANGE_NS = 3_600 * NANOSECONDS
MOST_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class AccessChange:
    """What is changed, and all that may be asked of it."""

    replaced: Holding
    selections: tuple[Selection, ...]


@dataclass(frozen=True, slots=True)
class GrantChanges:
    """Begins changes; they are decided like requests."""

    store: AuthorizationStore
    clock: Callable[[], int]
    random_bytes: RandomBytes

    def begin(self, held_id: str, acting: Acting) -> str:
        """The handle of a new request to change an access.  Raises: NotFound, RequestClosed."""
        now_ns = self.clock()
        with self.store.write() as writer:
            row = change_request(writer, held_id, self.random_bytes, now_ns)
            writer.insert(row)
            subject = Subject(row.client_id)
            audit(
                writer,
                "request.created",
                acting,
                now_ns,
                subject,
                request=row.request_id,
                flow=CHANGE,
            )
        return row.request_id


def change_request(
    reader: AuthorizationReader, held_id: str, random_bytes: RandomBytes, now_ns: int
) -> RequestRow:
    """The request that a change is; it is open from the beginning.

    Raises: NotFound, RequestClosed.
    """
    held = show_held(reader, held_id, now_ns)
    if held is None:
        raise NotFound("There is no such access.", next_step="See the list of who has access.")
    if _is_over(held):
        raise _ended()
    agreed = _artifact(reader, held)
    return RequestRow(
        request_id=new_id(REQUEST, random_bytes),
        flow=CHANGE,
        client_id=held.client_id,
        origin=str(agreed.get("origin", "")),
        resource=str(agreed.get("resource", "")),
        scope="",
        created_at_ns=now_ns,
        opened_at_ns=now_ns,
        expires_at_ns=now_ns + CHANGE_NS,
        replaces=held_id,
    )


def change_of(reader: AuthorizationReader, row: RequestRow, now_ns: int) -> AccessChange | None:
    """What a request changes, `None` for that of an app.

    An access that was changed meanwhile is the successor's.  Raises: RequestClosed.
    """
    if row.replaces is None:
        return None
    held = successor_of(reader, row.replaces, now_ns)
    if held is None or _is_over(held):
        raise _ended()
    sources = cast("list[dict[str, Any]]", _artifact(reader, held).get("sources") or [])
    commitments = {
        str(source["source"]["id"]): tuple(source["client_claims"]["commitments"])
        for source in sources
        if source.get("client_claims")
    }
    return AccessChange(held, change_selections(held.living_grants, commitments))


def _is_over(held: Holding) -> bool:
    return held.standing not in lifecycle.LIVING


def _ended() -> RequestClosed:
    return RequestClosed("This access has ended. An app that wants it again asks you again.")


def _artifact(reader: AuthorizationReader, held: Holding) -> Mapping[str, object]:
    row = reader.get(ReviewArtifactRow, ReviewArtifactRow.revision.equals(held.revision))
    return {} if row is None else cast("Mapping[str, object]", orjson.loads(row.artifact))


# The successor --------------------------------------------------------------------------------
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
    held = show_held(writer, held_id, now_ns)
    if held is None:
        return False
    given = name.strip() or None
    if len(given or "") > MOST_NAME_CHARS:
        raise InvalidRequest(
            message("A name has at most %(most)s characters.", most=MOST_NAME_CHARS), param="name"
        )
    if held.kind == "mcp_package":
        writer.change(
            PackageRow, [PackageRow.name.to(given)], PackageRow.package_id.equals(held_id)
        )
        subject = Subject(held.client_id, package_id=held_id)
    else:
        writer.change(GrantRow, [GrantRow.name.to(given)], GrantRow.grant_id.equals(held_id))
        subject = Subject(held.client_id, held_id)
    audit(writer, "grant.renamed", acting, now_ns, subject)
    return True
