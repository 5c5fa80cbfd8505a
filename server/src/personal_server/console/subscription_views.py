"""Event subscriptions in words, each with its newest messages."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pdpp_kernel.texts import Joined, Text, message
from personal_server.delivery.subscription_states import subscription_list
from personal_server.granting.holdings import Holding
from personal_server.storage.authorization_rows import EventRow, SubscriptionRow
from personal_server.storage.ports.authorization_store import AuthorizationReader

STATUSES: Mapping[str, Text] = {
    "pending_verification": message("waiting until the app's address answers"),
    "active": message("on"),
    "disabled": message("paused"),
    "disabled_failure": message("notifications stopped: no answer from the app"),
    "disabled_revoked": message("ended for good"),
}
RECENT_EVENTS = 10


class ToldEvent(msgspec.Struct, frozen=True):
    """A message on its way, or what became of it."""

    at_ns: int
    said: Text


class ToldView(msgspec.Struct, frozen=True):
    """A subscription in words, and its newest messages."""

    row: SubscriptionRow
    status: Text
    events: tuple[ToldEvent, ...]


def subscriptions_of(reader: AuthorizationReader, holding: Holding) -> list[SubscriptionRow]:
    """The subscriptions of an access."""
    grants = {grant.grant_id for grant in holding.grants}
    return [row for row in subscription_list(reader) if row.grant_id in grants]


def subscription_view(reader: AuthorizationReader, row: SubscriptionRow) -> ToldView:
    """A subscription with its newest messages."""
    of_it = EventRow.subscription_id.equals(row.subscription_id)
    newest = reader.rows(
        EventRow, of_it, order=EventRow.created_at_ns, descending=True, limit=RECENT_EVENTS
    )
    return ToldView(row, STATUSES[row.status], tuple(_event(event) for event in newest))


def _event(row: EventRow) -> ToldEvent:
    subject = row.stream or row.type.removeprefix("pdpp.").replace(".", " ")
    outcome = (row.outcome or "waits").replace("_", " ")
    words: Text = Joined((subject, outcome), ": ")
    if row.attempts > 1:
        words = message("%(said)s, attempt %(number)s", said=words, number=row.attempts)
    return ToldEvent(row.done_at_ns or row.created_at_ns, words)
