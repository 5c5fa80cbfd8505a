"""What happened, as events that tell no content.

Rule: what somebody may be told is decided when it is sent, from one state of the store, by the very
read that they would make (`reading.changes.news_after`); what waits to be sent is only that
something changed at a place since a number.
Source: docs/contract/resource-server.md 15.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import orjson

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import render_instant
from personal_server.consent import lifecycle
from personal_server.consent.credentials import RandomBytes
from personal_server.delivery.pending_events import (
    EventType,
    new_event,
    oldest_of,
    waiting,
)
from personal_server.delivery.signatures import SecretBox
from personal_server.delivery.subscribers import CHALLENGE_NS
from personal_server.delivery.subscription_scopes import sources_of
from personal_server.delivery.subscription_states import (
    ACTIVE,
    PENDING,
    REVOKED,
    end,
    fail,
)
from personal_server.granting.audit import SERVER
from personal_server.reading.changes import news_after
from personal_server.reading.identification import Identified, Identifier, OneState, OpenState
from personal_server.reading.ports import ReadPorts
from personal_server.reading.tokens import TokenHolder
from personal_server.storage.authorization_rows import (
    EventRow,
    FamilyRow,
    GrantRow,
    SubscriptionRow,
    TokenRow,
)
from personal_server.storage.grants import grant_standing
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
)
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS


class AccessPaused(Exception):
    """The access behind a subscription cannot be read now, and is not over."""


ROOT = "/v1/event-subscriptions"
MOST_WAITING = 1_000
_WAITING = frozenset({lifecycle.PAUSED, lifecycle.INVALID})
# How many events of a subscription that are done are kept, for its owner to see.
KEPT_EVENTS = 50
_SENT_WHILE = {
    EventType.VERIFY: PENDING,
    EventType.TEST: ACTIVE,
    EventType.CHANGED: ACTIVE,
    EventType.REVOKED: REVOKED,
}


class Letter(msgspec.Struct, frozen=True):
    """An event that may be sent now: where to, what it says, and what signs it."""

    event: EventRow
    subscription: SubscriptionRow
    body: bytes
    secrets: tuple[bytes, ...]


class Found(msgspec.Struct, frozen=True):
    """What a look at one subscription came to: up to which change, and where something changed."""

    row: SubscriptionRow
    horizon: int
    places: tuple[tuple[str, str], ...]


class Events(msgspec.Struct, frozen=True):
    """What is to be told to whom, from what the store says has changed."""

    ports: ReadPorts
    store: AuthorizationStore
    open_state: OpenState
    identify: Identifier
    secrets: SecretBox

    @property
    def random_bytes(self) -> RandomBytes:
        """Of which ids are made."""
        return self.ports.random_bytes

    def newest(self) -> int:
        """The number of the newest change."""
        with self.ports.snapshot(READ_DEADLINE_SECONDS) as snapshot:
            return snapshot.horizon

    def awaited(self) -> int | None:
        """The number of the newest change; `None` while nobody wants to know."""
        with self.open_state(READ_DEADLINE_SECONDS) as (reader, snapshot):
            return snapshot.horizon if reader.count(SubscriptionRow) else None

    def gather(self, now_ns: int, *, ends: bool) -> int:
        """Note for everybody what changed since they were looked at last; up to which change.

        `ends` is whether the clock may end anything now.
        """
        with self.open_state(None) as state:
            reader, horizon = state[0], state[1].horizon
            rows = [row for row in reader.rows(SubscriptionRow) if row.status != REVOKED]
            over = [(row, why) for row in rows if (why := end_of(reader, row, now_ns))]
            ended = {row.subscription_id for row, _ in over}
            found = [
                self._look(row, state)
                for row in rows
                if row.status == ACTIVE and row.subscription_id not in ended
            ]
        with self.store.write() as writer:
            for row, why in over:
                end(writer, row, why, SERVER, self.random_bytes, now_ns)
            for each in found:
                if each is not None:
                    self._note(writer, each, now_ns)
            for row in rows:
                if ends and row.status == PENDING and is_unanswered(row, now_ns):
                    fail(writer, row, "not_verified", SERVER, self.random_bytes, now_ns)
        return horizon

    def _look(self, row: SubscriptionRow, state: OneState) -> Found | None:
        reader, snapshot = state
        if snapshot.horizon == row.seen:
            return None
        identified = self.identify.holder(holder_of(row), reader, snapshot)
        if why_paused(row, identified) is not None:
            return None  # what changes meanwhile is told when it goes on
        changed = frozenset(snapshot.changed_after(row.seen))
        places = [
            source.order
            for source in sources_of(row, identified.authority)
            if source.order in changed
        ]
        return Found(row, snapshot.horizon, tuple(places))

    def _note(self, writer: AuthorizationWriter, found: Found, now_ns: int) -> None:
        """Queue events and remember how far they tell, in one transaction."""
        row = found.row
        moved = writer.change(
            SubscriptionRow,
            [SubscriptionRow.seen.to(found.horizon)],
            SubscriptionRow.subscription_id.equals(row.subscription_id),
            SubscriptionRow.status.equals(ACTIVE),
            SubscriptionRow.seen.equals(row.seen),
        )
        if not moved or not found.places:
            return
        queued = waiting(writer, row.subscription_id)
        untried = oldest_of(each for each in queued if each.outcome is None)
        is_full = len(queued) >= MOST_WAITING
        for key in found.places:
            if key in untried:
                continue  # its bookmark stands before these changes already
            since = row.seen
            if is_full:
                since = min(since, oldest_of(queued).get(key, since))
                _drop(writer, queued, key)
            event = new_event(
                row, EventType.CHANGED, self.random_bytes, now_ns, key=key, since=since
            )
            writer.insert(event)

    def letters(
        self, events: Sequence[EventRow], now_ns: int
    ) -> list[Letter | AccessPaused | PersonalServerError | None]:
        """What events say now, each decided anew; `None` where nothing may be told any more.

        `AccessPaused` is where it may not be told yet, an error where it could not be read.
        """
        made: list[Letter | AccessPaused | PersonalServerError | None] = []
        while len(made) < len(events):
            try:
                with self.open_state(READ_DEADLINE_SECONDS) as state:
                    for event in events[len(made) :]:
                        letter = self._letter(state, event.event_id, now_ns)
                        made.append(letter)
            except (AccessPaused, PersonalServerError) as error:
                made.append(error)  # which left no time to the others: they have a state anew
        return made

    def _letter(self, state: OneState, event_id: str, now_ns: int) -> Letter | None:
        reader, _ = state
        event = reader.get(EventRow, EventRow.event_id.equals(event_id))
        if event is None or event.done_at_ns is not None:
            return None
        of_it = SubscriptionRow.subscription_id.equals(event.subscription_id)
        row = reader.get(SubscriptionRow, of_it)
        if row is None or row.status != _SENT_WHILE[EventType(event.type)]:
            return None
        content = self._said(event, row, state, now_ns)
        if content is None:
            return None
        body = orjson.dumps(
            {
                "specversion": "1.0",
                "pdppversion": "1",
                "id": event.event_id,
                "type": event.type,
                "source": f"{ROOT}/{row.subscription_id}",
                "time": render_instant(event.created_at_ns),
                "data": {"subscription_id": row.subscription_id, **content},
            }
        )
        return Letter(event, row, body, self._secrets(row, now_ns))

    def _said(
        self, event: EventRow, row: SubscriptionRow, state: OneState, now_ns: int
    ) -> dict[str, object] | None:
        reader, snapshot = state
        match EventType(event.type):
            case EventType.TEST:
                return {}
            case EventType.VERIFY:
                return {"challenge": event.said}
            case EventType.REVOKED:
                return {"reason": event.said}
            case EventType.CHANGED:
                if end_of(reader, row, now_ns):
                    return None
        identified = self.identify.holder(holder_of(row), reader, snapshot)
        paused = why_paused(row, identified)
        if paused is not None:
            raise paused
        key = (event.connection_id or "", event.stream or "")
        sources = {s.order: s for s in sources_of(row, identified.authority)}
        if key not in sources:
            return None
        news = news_after(self.ports, snapshot, identified.authority, key, event.since or 0)
        if news is None:
            return None
        return {
            "stream": key[1],
            "connection_id": key[0],
            "connector_key": sources[key].connector_key,
            "change_count_hint": news.count,
            "changes_since": news.bookmark,
        }

    def _secrets(self, row: SubscriptionRow, now_ns: int) -> tuple[bytes, ...]:
        sealed = [row.secret]
        if row.old_secret is not None and now_ns < (row.old_secret_until_ns or 0):
            sealed.append(row.old_secret)
        return tuple(self.secrets.open(each, row.subscription_id) for each in sealed)


def holder_of(row: SubscriptionRow) -> TokenHolder:
    """Whose tokens may read what a subscription tells of."""
    return TokenHolder(row.client_id, row.grant_id, row.package_id)


def end_of(reader: AuthorizationReader, row: SubscriptionRow, now_ns: int) -> str | None:
    """Why the access behind a subscription is over, `None` while it lasts."""
    if row.grant_id is None:
        return None if _acts_as_owner(reader, row.client_id, now_ns) else "revoked"
    grant = reader.get(GrantRow, GrantRow.grant_id.equals(row.grant_id))
    if grant is None:
        return "revoked"
    standing = grant_standing(grant, now_ns)
    if standing == lifecycle.EXPIRED:
        return "expired"
    return "revoked" if standing in (lifecycle.REVOKED, lifecycle.DISCONNECTED) else None


def _acts_as_owner(reader: AuthorizationReader, client_id: str, now_ns: int) -> bool:
    """Whether a client has a token of the owner's, or can still get one."""
    families = reader.rows(
        FamilyRow, FamilyRow.client_id.equals(client_id), FamilyRow.revoked_at_ns.equals(None)
    )
    if any(each.kind == "owner" for each in families):
        return True
    tokens = reader.rows(
        TokenRow,
        TokenRow.client_id.equals(client_id),
        TokenRow.revoked_at_ns.equals(None),
        TokenRow.expires_at_ns.above(now_ns),
    )
    return any(each.kind == "owner" and each.family_id is None for each in tokens)


def why_paused(row: SubscriptionRow, identified: Identified) -> AccessPaused | None:
    """What is raised while the access behind a subscription waits, also as one of a package."""
    waits = any(
        each.grant_id == row.grant_id and each.reason in _WAITING
        for each in identified.authority.unavailable
    )
    return AccessPaused() if identified.refusal is not None or waits else None


def is_unanswered(row: SubscriptionRow, now_ns: int) -> bool:
    """Whether the last challenge is past its time."""
    return max(row.challenges, default=0) + CHALLENGE_NS <= now_ns


def prune(writer: AuthorizationWriter, subscription_id: str) -> None:
    """Forget the oldest events of a subscription that are done, beyond those that are kept."""
    done = (EventRow.subscription_id.equals(subscription_id), EventRow.done_at_ns.above(0))
    too_many = writer.count(EventRow, *done) - KEPT_EVENTS
    if too_many > 0:
        oldest = writer.rows(EventRow, *done, order=EventRow.done_at_ns, limit=too_many)
        for event in oldest:
            writer.delete(EventRow, EventRow.event_id.equals(event.event_id))


def _drop(writer: AuthorizationWriter, queued: Iterable[EventRow], key: tuple[str, str]) -> None:
    for event in queued:
        if (event.connection_id, event.stream) == key:
            writer.delete(EventRow, EventRow.event_id.equals(event.event_id))
