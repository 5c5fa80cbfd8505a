"""Event subscriptions: who asked to be told, where, and how that stands.

Rule: only a challenge that was answered makes one active, and only an active one is told anything;
its life is the table `consent.lifecycle.SUBSCRIPTION`, and what was not announced when it stops is
announced when it goes on.
Source: docs/contract/resource-server.md 15, 15.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pdpp_kernel.errors import (
    EventsNotGranted,
    InvalidState,
    LimitReached,
    NotFound,
    VerificationPending,
)
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.consent.credentials import EVENT, SUBSCRIPTION, RandomBytes, new_id
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.signatures import SECRET_BYTES, SecretBox
from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
from personal_server.enforcement.ambiguity import ambiguous, connection_count
from personal_server.enforcement.queries import Selectors
from personal_server.enforcement.source_selection import select_any, select_everywhere
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.reading_alarms import limits_of
from personal_server.granting.transitions import transition
from personal_server.storage.authorization import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
    EventRow,
    SubscriptionRow,
)
from personal_server.storage.tables import Assignment, ColumnCondition
from personal_server.web.failed_attempts import refuse_until

MOST_PER_GRANT: Final = 10
CHALLENGE_NS: Final = 3_600 * NANOSECONDS
MOST_CHALLENGES: Final = 5
OLD_SECRET_NS: Final = DAY_NANOSECONDS
TEST_PAUSE_NS: Final = 60 * NANOSECONDS

PENDING, ACTIVE, DISABLED = "pending_verification", "active", "disabled"
FAILED, REVOKED = "disabled_failure", "disabled_revoked"


class EventType(StrEnum):
    """What a receiver may hear."""

    VERIFY = "pdpp.subscription.verify"
    TEST = "pdpp.subscription.test"
    CHANGED = "pdpp.records.changed"
    REVOKED = "pdpp.grant.revoked"


@dataclass(frozen=True, slots=True)
class Filters:
    """What a subscription is narrowed to; empty is all that its access reads."""

    streams: tuple[str, ...] = ()
    connection_ids: tuple[str, ...] = ()


EVERYTHING = Filters()


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be changed of a subscription; `None` stays."""

    enabled: bool | None = None
    callback_url: str | None = None
    filters: Filters | None = None
    rotate_secret: bool = False


@dataclass(frozen=True, slots=True)
class SubscriptionView:
    """A subscription for whoever may see it; `secret` only when it was just made."""

    row: SubscriptionRow
    secret: bytes | None = None


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The subscriptions of one owner's records, for those who ask to be told.

    Shapes: `horizon` gives the number of the newest change.
    """

    store: AuthorizationStore
    callbacks: Callbacks
    secrets: SecretBox
    horizon: Callable[[], int]
    random_bytes: RandomBytes

    def create(
        self,
        authority: ReadAuthority,
        callback_url: str,
        filters: Filters,
        connection_id: str | None,
        acting: Acting,
        now_ns: int,
    ) -> SubscriptionView:
        """A new subscription, whose address is asked to answer a challenge.

        Raises: EventsNotGranted, InvalidCallback, LimitReached, AmbiguousConnection,
            ConnectionNotFound, GrantStreamNotAllowed, NotFound.
        """
        grant_id = member_of(authority, connection_id)
        check_filters(authority, filters)
        self._check_allowed(authority)
        self.callbacks.check(callback_url)
        subscription_id = new_id(SUBSCRIPTION, self.random_bytes)
        secret = self.random_bytes(SECRET_BYTES)
        row = SubscriptionRow(
            subscription_id=subscription_id,
            client_id=authority.client_id or "",
            grant_id=grant_id,
            package_id=authority.package_id,
            callback_url=callback_url,
            streams=filters.streams,
            connection_ids=filters.connection_ids,
            secret=self.secrets.seal(secret, subscription_id),
            seen=self.horizon(),
            created_at_ns=now_ns,
            updated_at_ns=now_ns,
            challenges=(now_ns,),
        )
        with self.store.write() as writer:
            if sum(each.status != REVOKED for each in _same_holder(writer, row)) >= MOST_PER_GRANT:
                raise LimitReached(
                    f"An access can have at most {MOST_PER_GRANT} event "
                    "subscriptions; delete one first."
                )
            writer.insert(row)
            self._challenge(writer, row, now_ns)
            audit(writer, "subscription.created", acting, now_ns, subject_of(row))
        return SubscriptionView(row, secret)

    def _check_allowed(self, authority: ReadAuthority) -> None:
        """Whether the owner lets this caller be told.  Raises: EventsNotGranted."""
        if authority.kind is TokenKind.OWNER:
            return
        with self.store.read() as reader:
            limits = limits_of(reader, authority.package_id or authority.grant_ids[0])
        if not limits.events:
            raise EventsNotGranted(
                "The owner has not allowed this app to get notifications.",
                next_step=(
                    'Ask for notifications with "events": true in '
                    "authorization_details, or ask the owner to allow them on the page "
                    "of this access. Meanwhile, read from a bookmark (changes_since)."
                ),
            )

    def of(self, authority: ReadAuthority) -> list[SubscriptionRow]:
        """Those that a caller may see, the oldest first."""
        with self.store.read() as reader:
            rows = reader.rows(SubscriptionRow, order=SubscriptionRow.created_at_ns)
        return [row for row in rows if is_of(row, authority)]

    def get(self, authority: ReadAuthority, subscription_id: str) -> SubscriptionRow:
        """One of them.  Raises: NotFound."""
        with self.store.read() as reader:
            return _of_caller(reader, authority, subscription_id)

    def change(
        self,
        authority: ReadAuthority,
        subscription_id: str,
        changes: Changes,
        acting: Acting,
        now_ns: int,
    ) -> SubscriptionView:
        """Change one; another address is asked to answer a challenge first.

        Raises: EventsNotGranted, NotFound, InvalidState, InvalidCallback, VerificationPending,
            RateLimitExceeded, ConnectionNotFound, GrantStreamNotAllowed.
        """
        row = self.get(authority, subscription_id)
        if row.status == REVOKED:
            raise InvalidState(
                "The access behind this subscription ended, so no more notifications are sent."
            )
        if changes.filters is not None:
            check_filters(authority, changes.filters)
        url = changes.callback_url
        moves = url is not None and url != row.callback_url
        if moves or changes.enabled:
            self._check_allowed(authority)
        if moves and row.disabled_reason == "owner":
            raise InvalidState("The owner paused this subscription; only the owner can resume it.")
        if url is not None and moves:
            self.callbacks.check(url)
        secret = self.random_bytes(SECRET_BYTES) if changes.rotate_secret else None
        pending: VerificationPending | None = None
        with self.store.write() as writer:
            row = _of_caller(writer, authority, subscription_id)
            set_ = [SubscriptionRow.updated_at_ns.to(now_ns)]
            set_ += self._assigned(row, changes.filters, secret, now_ns)
            if url is not None and moves:
                set_.append(SubscriptionRow.callback_url.to(url))
            writer.change(SubscriptionRow, set_, _is(subscription_id))
            row = _of_caller(writer, authority, subscription_id)
            if moves:
                self._begin_again(writer, row, now_ns)
            elif changes.enabled is not None:
                pending = self._enable(writer, row, acting, now_ns, enabled=changes.enabled)
            audit(writer, "subscription.changed", acting, now_ns, subject_of(row))
            row = _of_caller(writer, authority, subscription_id)
        if pending is not None:
            raise pending
        return SubscriptionView(row, secret)

    def _assigned(
        self, row: SubscriptionRow, filters: Filters | None, secret: bytes | None, now_ns: int
    ) -> list[Assignment[SubscriptionRow]]:
        found: list[Assignment[SubscriptionRow]] = []
        if filters is not None:
            found.append(SubscriptionRow.streams.to(filters.streams))
            found.append(SubscriptionRow.connection_ids.to(filters.connection_ids))
        if secret is not None:
            sealed = self.secrets.seal(secret, row.subscription_id)
            found.append(SubscriptionRow.secret.to(sealed))
            found.append(SubscriptionRow.old_secret.to(row.secret))
            found.append(SubscriptionRow.old_secret_until_ns.to(now_ns + OLD_SECRET_NS))
        return found

    def _enable(
        self,
        writer: AuthorizationWriter,
        row: SubscriptionRow,
        acting: Acting,
        now_ns: int,
        *,
        enabled: bool,
    ) -> VerificationPending | None:
        """What a caller's `enabled` does; an error that it is told although something was done."""
        if not enabled:
            if row.status not in (ACTIVE, DISABLED):
                raise InvalidState("Only an active subscription can be paused.")
            pause(writer, row, "client", acting, now_ns)
        elif row.status == DISABLED:
            if not go_on(writer, row, "client", acting, now_ns):
                raise InvalidState(
                    "The owner paused this subscription; only the owner can resume it."
                )
        elif row.status in (PENDING, FAILED):
            self._begin_again(writer, row, now_ns)
            if row.status == PENDING:
                return VerificationPending(
                    "The address of the subscription has not answered the "
                    "challenge; the server sends another challenge."
                )
        return None

    def _begin_again(self, writer: AuthorizationWriter, row: SubscriptionRow, now_ns: int) -> None:
        """Ask the address once more.  Raises: RateLimitExceeded."""
        recent = [at for at in row.challenges if at > now_ns - CHALLENGE_NS]
        if len(recent) >= MOST_CHALLENGES:
            message = (
                f"The server sends at most {MOST_CHALLENGES} challenges an hour to one address."
            )
            refuse_until(recent[0] + CHALLENGE_NS, now_ns, "challenges", message)
        park(writer, row.subscription_id, self.random_bytes, now_ns)
        again: list[Assignment[SubscriptionRow]] = [
            SubscriptionRow.challenges.to((*recent, now_ns)),
            SubscriptionRow.disabled_reason.to(None),
            SubscriptionRow.verified_at_ns.to(None),
        ]
        which = _is(row.subscription_id)
        if row.status == PENDING:
            writer.change(SubscriptionRow, again, which)
        else:
            transition(writer, SubscriptionRow, row.status, PENDING, now_ns, which, columns=again)
        self._challenge(writer, row, now_ns)

    def _challenge(self, writer: AuthorizationWriter, row: SubscriptionRow, now_ns: int) -> None:
        said = self.random_bytes(32).hex()
        writer.insert(new_event(row, EventType.VERIFY, self.random_bytes, now_ns, said=said))

    def delete(
        self, authority: ReadAuthority, subscription_id: str, acting: Acting, now_ns: int
    ) -> None:
        """Forget one, with what is on its way.  Raises: NotFound."""
        with self.store.write() as writer:
            row = _of_caller(writer, authority, subscription_id)
            forget(writer, row, acting, now_ns)

    def test(
        self, authority: ReadAuthority, subscription_id: str, acting: Acting, now_ns: int
    ) -> str:
        """Send an event that says nothing; its id.

        Raises: NotFound, InvalidState, RateLimitExceeded.
        """
        with self.store.write() as writer:
            row = _of_caller(writer, authority, subscription_id)
            return send_test(writer, row, acting, self.random_bytes, now_ns)


# What a caller may see and name ---------------------------------------------------------------
def is_of(row: SubscriptionRow, authority: ReadAuthority) -> bool:
    """Whether a subscription is its caller's: of the same client, and of its grant."""
    if row.client_id != (authority.client_id or ""):
        return False
    if authority.kind is TokenKind.OWNER:
        return row.grant_id is None
    return row.grant_id in authority.grant_ids and row.package_id == authority.package_id


def _of_caller(
    reader: AuthorizationReader, authority: ReadAuthority, subscription_id: str
) -> SubscriptionRow:
    row = reader.get(SubscriptionRow, _is(subscription_id))
    if row is None or not is_of(row, authority):
        raise NotFound("There is no such event subscription.")
    return row


def _same_holder(reader: AuthorizationReader, row: SubscriptionRow) -> list[SubscriptionRow]:
    rows = reader.rows(SubscriptionRow, SubscriptionRow.grant_id.equals(row.grant_id))
    return [each for each in rows if each.client_id == row.client_id]


def member_of(authority: ReadAuthority, connection_id: str | None) -> str | None:
    """The grant that a subscription of this caller belongs to.

    Raises: AmbiguousConnection, ConnectionNotFound.
    """
    if authority.kind is TokenKind.OWNER:
        return None
    selected = select_any(authority, Selectors(connection_id))
    if authority.kind is not TokenKind.PACKAGE:
        return authority.grant_ids[0]
    if not selected:
        raise NotFound("This access can read nothing now.")
    if connection_id is None and connection_count(selected) > 1:
        raise ambiguous(authority, selected, None)
    return selected[0].grant_id


def check_filters(authority: ReadAuthority, filters: Filters) -> None:
    """Whether everything named can be read.

    Raises: ConnectionNotFound, GrantStreamNotAllowed, NotFound.
    """
    for connection_id in filters.connection_ids:
        select_any(authority, Selectors(connection_id))
    for stream in filters.streams:
        select_everywhere(authority, Selectors(), stream)


def sources_of(row: SubscriptionRow, authority: ReadAuthority) -> list[ReadableSource]:
    """The readable sources that a subscription is about."""
    return [
        source
        for source in authority.sources
        if source.grant_id == row.grant_id
        and source.made_of is None
        and (not row.streams or source.stream in row.streams)
        and (not row.connection_ids or source.connection_id in row.connection_ids)
    ]


def subject_of(row: SubscriptionRow) -> Subject:
    """What an audit event about a subscription is about."""
    return Subject(row.client_id, row.grant_id)


# Changes of state -----------------------------------------------------------------------------
def subscription_list(reader: AuthorizationReader) -> list[SubscriptionRow]:
    """All of an owner's records, the oldest first."""
    return reader.rows(SubscriptionRow, order=SubscriptionRow.created_at_ns)


def find_subscription(reader: AuthorizationReader, subscription_id: str) -> SubscriptionRow | None:
    """One of them, for their owner."""
    return reader.get(SubscriptionRow, _is(subscription_id))


def pause(
    writer: AuthorizationWriter, row: SubscriptionRow, reason: str, acting: Acting, now_ns: int
) -> bool:
    """Tell it nothing until it goes on; what is on its way waits.  Whether it was active."""
    columns = [SubscriptionRow.disabled_reason.to(reason), SubscriptionRow.updated_at_ns.to(now_ns)]
    which = _is(row.subscription_id)
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
    which = _is(row.subscription_id)
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
    which = _is(row.subscription_id)
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
    which = _is(row.subscription_id)
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
    which = _is(row.subscription_id)
    if transition(writer, SubscriptionRow, row.status, REVOKED, now_ns, which, columns=columns):
        _drop_waiting(writer, row.subscription_id)
        if row.status == ACTIVE:
            writer.insert(new_event(row, EventType.REVOKED, random_bytes, now_ns, said=reason))
        audit(writer, "subscription.ended", acting, now_ns, subject_of(row), reason=reason)


def forget(writer: AuthorizationWriter, row: SubscriptionRow, acting: Acting, now_ns: int) -> None:
    """Remove a subscription and its events."""
    writer.delete(EventRow, EventRow.subscription_id.equals(row.subscription_id))
    writer.delete(SubscriptionRow, _is(row.subscription_id))
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
    writer.change(SubscriptionRow, tested, _is(row.subscription_id))
    event = new_event(row, EventType.TEST, random_bytes, now_ns)
    writer.insert(event)
    # an audit event wakes the process that sends, whichever wrote it
    audit(writer, "subscription.tested", acting, now_ns, subject_of(row))
    return event.event_id


# What is on its way ---------------------------------------------------------------------------
def new_event(
    row: SubscriptionRow,
    type_: EventType,
    random_bytes: RandomBytes,
    now_ns: int,
    *,
    said: str | None = None,
    place: tuple[str, str] | None = None,
    since: int | None = None,
    is_due: bool = True,
) -> EventRow:
    """An event that is due, or waits."""
    connection_id, stream = place or (None, None)
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
    row = writer.get(SubscriptionRow, _is(subscription_id))
    oldest = oldest_of(waiting(writer, subscription_id))
    _drop_waiting(writer, subscription_id)
    for place, since in oldest.items():
        assert row is not None  # noqa: S101  # its events go with it
        kept = new_event(
            row, EventType.CHANGED, random_bytes, now_ns, place=place, since=since, is_due=False
        )
        writer.insert(kept)


def oldest_of(events: Iterable[EventRow]) -> dict[tuple[str, str], int]:
    """Behind which change the first bookmark of each (connection, stream) stands."""
    found: dict[tuple[str, str], int] = {}
    for event in events:
        if event.connection_id is not None and event.stream is not None:
            place, since = (event.connection_id, event.stream), event.since or 0
            found[place] = min(since, found.get(place, since))
    return found


def _drop_waiting(writer: AuthorizationWriter, subscription_id: str) -> None:
    writer.delete(EventRow, *_waits(subscription_id))


def _waits(subscription_id: str) -> tuple[ColumnCondition[EventRow], ...]:
    return (EventRow.subscription_id.equals(subscription_id), EventRow.done_at_ns.equals(None))


def _is(subscription_id: str) -> ColumnCondition[SubscriptionRow]:
    return SubscriptionRow.subscription_id.equals(subscription_id)
