"""Events that are due or wait: made, held back, released, dropped.

Source: docs/contract/resource-server.md 15.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from personal_server.consent.credentials import EVENT, RandomBytes, new_id
from personal_server.delivery.subscription_scopes import has_id
from personal_server.storage.authorization_rows import EventRow, SubscriptionRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationWriter,
)
from personal_server.storage.tables import ColumnCondition


class EventType(StrEnum):
    """What a receiver may hear."""

    VERIFY = "pdpp.subscription.verify"
    TEST = "pdpp.subscription.test"
    CHANGED = "pdpp.records.changed"
    REVOKED = "pdpp.grant.revoked"


def new_event(
    row: SubscriptionRow,
    type_: EventType,
    random_bytes: RandomBytes,
    now_ns: int,
    *,
    said: str | None = None,
    key: tuple[str, str] | None = None,
    since: int | None = None,
    is_due: bool = True,
) -> EventRow:
    """An event that is due, or waits."""
    connection_id, stream = key or (None, None)
    return EventRow(
        event_id=new_id(EVENT, random_bytes),
        subscription_id=row.subscription_id,
        type=type_.value,
        connection_id=connection_id,
        stream=stream,
        since=since,
        said=said,
        created_at_ns=now_ns,
        due_at_ns=now_ns if is_due else None,
    )


def waiting(reader: AuthorizationReader, subscription_id: str) -> list[EventRow]:
    """The events of a subscription that are not done, the oldest first."""
    return reader.rows(
        EventRow,
        EventRow.subscription_id.equals(subscription_id),
        EventRow.done_at_ns.equals(None),
        order=EventRow.created_at_ns,
    )


def hold(writer: AuthorizationWriter, subscription_id: str) -> None:
    """What is on its way is due no more."""
    writer.change(EventRow, [EventRow.due_at_ns.to(None)], *_waits(subscription_id))


def release(writer: AuthorizationWriter, subscription_id: str, now_ns: int) -> None:
    """What waits is due now."""
    writer.change(EventRow, [EventRow.due_at_ns.to(now_ns)], *_waits(subscription_id))


def park(
    writer: AuthorizationWriter, subscription_id: str, random_bytes: RandomBytes, now_ns: int
) -> None:
    """Drop what is on its way, but for one event of each place that tells all that was untold."""
    row = writer.get(SubscriptionRow, has_id(subscription_id))
    oldest = oldest_of(waiting(writer, subscription_id))
    drop_waiting(writer, subscription_id)
    for key, since in oldest.items():
        assert row is not None  # noqa: S101  # its events go with it
        kept = new_event(
            row, EventType.CHANGED, random_bytes, now_ns, key=key, since=since, is_due=False
        )
        writer.insert(kept)


def oldest_of(events: Iterable[EventRow]) -> dict[tuple[str, str], int]:
    """Behind which change the first bookmark of each (connection, stream) stands."""
    found: dict[tuple[str, str], int] = {}
    for event in events:
        if event.connection_id is not None and event.stream is not None:
            key, since = (event.connection_id, event.stream), event.since or 0
            found[key] = min(since, found.get(key, since))
    return found


def drop_waiting(writer: AuthorizationWriter, subscription_id: str) -> None:
    """Forget the events that were not sent."""
    writer.delete(EventRow, *_waits(subscription_id))


def _waits(subscription_id: str) -> tuple[ColumnCondition[EventRow], ...]:
    return (EventRow.subscription_id.equals(subscription_id), EventRow.done_at_ns.equals(None))
