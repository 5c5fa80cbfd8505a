"""Changes of the state of an event subscription, each with its audit event.

Rule: its life is the table `consent.lifecycle.SUBSCRIPTION`; what was not announced when it
stops is announced when it resumes.
Source: docs/contract/resource-server.md 15, 15.1.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent.credentials import RandomBytes
from personal_server.delivery.pending_events import (
    EventType,
    drop_waiting,
    hold,
    new_event,
    park,
    release,
)
from personal_server.delivery.subscription_scopes import has_id, subject_of
from personal_server.granting.audit import Acting, audit
from personal_server.granting.transitions import transition
from personal_server.storage.authorization_rows import EventRow, SubscriptionRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationWriter,
)
from personal_server.storage.tables import Assignment
from personal_server.web.failed_attempts import refuse_until

TEST_PAUSE_NS: Final = 60 * NANOSECONDS


PENDING, ACTIVE, DISABLED = "pending_verification", "active", "disabled"
FAILED, REVOKED = "disabled_failure", "disabled_revoked"


def subscription_list(reader: AuthorizationReader) -> list[SubscriptionRow]:
    """All of an owner's records, the oldest first."""
    return reader.rows(SubscriptionRow, order=SubscriptionRow.created_at_ns)


def find_subscription(reader: AuthorizationReader, subscription_id: str) -> SubscriptionRow | None:
    """One of them, for their owner."""
    return reader.get(SubscriptionRow, has_id(subscription_id))


def pause(
    writer: AuthorizationWriter, row: SubscriptionRow, reason: str, acting: Acting, now_ns: int
) -> bool:
    """Tell it nothing until it goes on; what is on its way waits.  Whether it was active."""
    columns = [SubscriptionRow.disabled_reason.to(reason), SubscriptionRow.updated_at_ns.to(now_ns)]
    which = has_id(row.subscription_id)
    if not transition(writer, SubscriptionRow, ACTIVE, DISABLED, now_ns, which, columns=columns):
        return False
    hold(writer, row.subscription_id)
    audit(writer, "subscription.changed", acting, now_ns, subject_of(row), enabled=False)
    return True


def go_on(
    writer: AuthorizationWriter, row: SubscriptionRow, reason: str, acting: Acting, now_ns: int
) -> bool:
    """Tell it again what changes, and what changed meanwhile.

    Only for the reason for which it was switched off; whether it was.
    """
    if row.disabled_reason != reason:
        return False
    columns: list[Assignment[SubscriptionRow]] = [
        SubscriptionRow.disabled_reason.to(None),
        SubscriptionRow.updated_at_ns.to(now_ns),
    ]
    which = has_id(row.subscription_id)
    if not transition(writer, SubscriptionRow, DISABLED, ACTIVE, now_ns, which, columns=columns):
        return False
    release(writer, row.subscription_id, now_ns)
    audit(writer, "subscription.changed", acting, now_ns, subject_of(row), enabled=True)
    return True


def pause_all(
    writer: AuthorizationWriter, grant_ids: Collection[str], acting: Acting, now_ns: int
) -> None:
    """Grants may be told nothing any more: pause what they are told, drop what is not verified."""
    for row in subscription_list(writer):
        if row.grant_id not in grant_ids:
            continue
        if row.status == PENDING:
            forget(writer, row, acting, now_ns)
        else:
            pause(writer, row, "owner", acting, now_ns)


def verified(writer: AuthorizationWriter, row: SubscriptionRow, now_ns: int) -> None:
    """Its address answered the challenge."""
    columns: list[Assignment[SubscriptionRow]] = [
        SubscriptionRow.verified_at_ns.to(now_ns),
        SubscriptionRow.updated_at_ns.to(now_ns),
    ]
    which = has_id(row.subscription_id)
    transition(writer, SubscriptionRow, PENDING, ACTIVE, now_ns, which, columns=columns)
    release(writer, row.subscription_id, now_ns)


def fail(
    writer: AuthorizationWriter,
    row: SubscriptionRow,
    reason: str,
    acting: Acting,
    random_bytes: RandomBytes,
    now_ns: int,
) -> None:
    """Give up on its address."""
    columns = [SubscriptionRow.disabled_reason.to(reason), SubscriptionRow.updated_at_ns.to(now_ns)]
    which = has_id(row.subscription_id)
    if transition(writer, SubscriptionRow, row.status, FAILED, now_ns, which, columns=columns):
        park(writer, row.subscription_id, random_bytes, now_ns)
        audit(writer, "subscription.failed", acting, now_ns, subject_of(row), reason=reason)


def end(
    writer: AuthorizationWriter,
    row: SubscriptionRow,
    reason: str,
    acting: Acting,
    random_bytes: RandomBytes,
    now_ns: int,
) -> None:
    """The access behind it ended: an active one is told so, once, and then nothing any more."""
    columns = [SubscriptionRow.disabled_reason.to(reason), SubscriptionRow.updated_at_ns.to(now_ns)]
    which = has_id(row.subscription_id)
    if transition(writer, SubscriptionRow, row.status, REVOKED, now_ns, which, columns=columns):
        drop_waiting(writer, row.subscription_id)
        if row.status == ACTIVE:
            writer.insert(new_event(row, EventType.REVOKED, random_bytes, now_ns, said=reason))
        audit(writer, "subscription.ended", acting, now_ns, subject_of(row), reason=reason)


def forget(writer: AuthorizationWriter, row: SubscriptionRow, acting: Acting, now_ns: int) -> None:
    """Remove a subscription and its events."""
    writer.delete(EventRow, EventRow.subscription_id.equals(row.subscription_id))
    writer.delete(SubscriptionRow, has_id(row.subscription_id))
    audit(writer, "subscription.deleted", acting, now_ns, subject_of(row))


def send_test(
    writer: AuthorizationWriter,
    row: SubscriptionRow,
    acting: Acting,
    random_bytes: RandomBytes,
    now_ns: int,
) -> str:
    """Have an event sent that says nothing; its id.  Raises: InvalidState, RateLimitExceeded."""
    if row.status != ACTIVE:
        raise InvalidState("The server sends a test event only to an active subscription.")
    if row.tested_at_ns is not None:
        message = "The server sends at most one test event a minute."
        refuse_until(row.tested_at_ns + TEST_PAUSE_NS, now_ns, "test_events", message)
    tested = [SubscriptionRow.tested_at_ns.to(now_ns)]
    writer.change(SubscriptionRow, tested, has_id(row.subscription_id))
    event = new_event(row, EventType.TEST, random_bytes, now_ns)
    writer.insert(event)
    # an audit event wakes the process that sends, whichever wrote it
    audit(writer, "subscription.tested", acting, now_ns, subject_of(row))
    return event.event_id
