"""Event subscriptions: who asked to be told, where, and how that stands.

Rule: only a challenge that was answered makes one active, and only an active one is told anything;
its life is the table `consent.lifecycle.SUBSCRIPTION`, and what was not announced when it stops is
announced when it goes on.
Source: docs/contract/resource-server.md 15, 15.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pdpp_kernel.errors import (
    EventsNotGranted,
    InvalidState,
    LimitReached,
    VerificationPending,
)
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.consent.credentials import SUBSCRIPTION, RandomBytes, new_id
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.pending_events import (
    EventType,
    new_event,
    park,
)
from personal_server.delivery.signatures import SECRET_BYTES, SecretBox
from personal_server.delivery.subscription_scopes import (
    Filters,
    check_filters,
    has_id,
    is_of,
    member_of,
    of_same_holder,
    subject_of,
    subscription_of_caller,
)
from personal_server.delivery.subscription_states import (
    ACTIVE,
    DISABLED,
    FAILED,
    PENDING,
    REVOKED,
    forget,
    go_on,
    pause,
    send_test,
)
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.granting.audit import Acting, audit
from personal_server.granting.reading_alarms import limits_of
from personal_server.granting.transitions import transition
from personal_server.storage.authorization_rows import SubscriptionRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationStore,
    AuthorizationWriter,
)
from personal_server.storage.tables import Assignment
from personal_server.web.failed_attempts import refuse_until

MOST_PER_GRANT: Final = 10
CHALLENGE_NS: Final = 3_600 * NANOSECONDS
MOST_CHALLENGES: Final = 5
OLD_SECRET_NS: Final = DAY_NANOSECONDS


class Changes(msgspec.Struct, frozen=True):
    """What is to be changed of a subscription; `None` stays."""

    enabled: bool | None = None
    callback_url: str | None = None
    filters: Filters | None = None
    rotate_secret: bool = False


class SubscriptionView(msgspec.Struct, frozen=True):
    """A subscription for whoever may see it; `secret` only when it was just made."""

    row: SubscriptionRow
    secret: bytes | None = None


class Subscriptions(msgspec.Struct, frozen=True):
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
            if (
                sum(each.status != REVOKED for each in of_same_holder(writer, row))
                >= MOST_PER_GRANT
            ):
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
            return subscription_of_caller(reader, authority, subscription_id)

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
            row = subscription_of_caller(writer, authority, subscription_id)
            set_ = [SubscriptionRow.updated_at_ns.to(now_ns)]
            set_ += self._assigned(row, changes.filters, secret, now_ns)
            if url is not None and moves:
                set_.append(SubscriptionRow.callback_url.to(url))
            writer.change(SubscriptionRow, set_, has_id(subscription_id))
            row = subscription_of_caller(writer, authority, subscription_id)
            if moves:
                self._begin_again(writer, row, now_ns)
            elif changes.enabled is not None:
                pending = self._enable(writer, row, acting, now_ns, enabled=changes.enabled)
            audit(writer, "subscription.changed", acting, now_ns, subject_of(row))
            row = subscription_of_caller(writer, authority, subscription_id)
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
        which = has_id(row.subscription_id)
        if row.status == PENDING:
            writer.change(SubscriptionRow, again, which)
        else:
            transition(writer, SubscriptionRow, row.status, PENDING, now_ns, which, columns=again)
        self._challenge(writer, row, now_ns)

    def _challenge(self, writer: AuthorizationWriter, row: SubscriptionRow, now_ns: int) -> None:
        challenge = self.random_bytes(32).hex()
        writer.insert(new_event(row, EventType.VERIFY, self.random_bytes, now_ns, said=challenge))

    def delete(
        self, authority: ReadAuthority, subscription_id: str, acting: Acting, now_ns: int
    ) -> None:
        """Forget one, with what is on its way.  Raises: NotFound."""
        with self.store.write() as writer:
            row = subscription_of_caller(writer, authority, subscription_id)
            forget(writer, row, acting, now_ns)

    def test(
        self, authority: ReadAuthority, subscription_id: str, acting: Acting, now_ns: int
    ) -> str:
        """Send an event that says nothing; its id.

        Raises: NotFound, InvalidState, RateLimitExceeded.
        """
        with self.store.write() as writer:
            row = subscription_of_caller(writer, authority, subscription_id)
            return send_test(writer, row, acting, self.random_bytes, now_ns)
