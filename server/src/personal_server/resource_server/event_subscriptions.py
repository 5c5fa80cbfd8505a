"""Event subscriptions as their callers see them.  Source: docs/contract/resource-server.md 15."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, cast

import msgspec

from pdpp_kernel.errors import (
    AmbiguousConnection,
    ConnectionNotFound,
    EventsNotGranted,
    GrantStreamNotAllowed,
    InvalidCallback,
    InvalidState,
    LimitReached,
    VerificationPending,
)
from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import Address, Instant, WireObject, Word
from personal_server.delivery.signatures import shown_secret
from personal_server.delivery.subscribers import (
    Changes,
    Subscriptions,
    SubscriptionView,
)
from personal_server.delivery.subscription_scopes import (
    Filters,
    sources_of,
)
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.granting.audit import Acting
from personal_server.resource_server.envelopes import (
    ListOf,
    Meta,
    SelfLink,
    ShownSource,
    completed,
    page_of,
    shown_source,
)
from personal_server.storage.authorization_rows import SubscriptionRow
from personal_server.web.bodies import json_body, parse_body
from personal_server.web.parameters import Parameter
from personal_server.web.replies import Reply
from personal_server.web.requests import Request
from personal_server.web.routes import Route

ROOT = "/v1/event-subscriptions"
ONE = f"{ROOT}/{{id}}"
CONNECTION = Parameter(
    "connection_id",
    "The connection whose access it belongs to, of a package of several.",
    empty_is_absent=True,
)
EXAMPLE = {"callback_url": "https://app.example/hooks/pdpp", "filters": {"streams": ["entries"]}}
_Names = Annotated[tuple[Word, ...], msgspec.Meta(max_length=64)]


class SentFilters(msgspec.Struct, forbid_unknown_fields=True):
    """What somebody wants to be told of; nothing named is all that the access reads."""

    streams: _Names = ()
    connection_ids: _Names = ()


class NewSubscription(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks to be told."""

    callback_url: str
    filters: SentFilters = msgspec.field(default_factory=SentFilters)


class ChangedSubscription(msgspec.Struct, forbid_unknown_fields=True):
    """The body that changes a subscription."""

    enabled: bool | None = None
    callback_url: str | None = None
    filters: SentFilters | None = None
    rotate_secret: bool = False


class ShownScope(WireObject, kw_only=True):
    """What a subscription tells of."""

    source: ShownSource | None = None
    streams: Sequence[Word]
    connection_ids: Sequence[Word]


class LastDelivery(WireObject):
    """When something was sent last, and how that went."""

    at: Instant
    status: Word


class ShownSubscription(WireObject, kw_only=True, tag_field="object", tag="event_subscription"):
    """An event subscription."""

    subscription_id: Word
    authority_kind: Literal["client_grant", "owner"]
    grant_id: Word | None
    client_id: str
    callback_url: Address
    status: Literal[
        "pending_verification", "active", "disabled", "disabled_failure", "disabled_revoked"
    ]
    scope: ShownScope
    verified_at: Instant | None
    disabled_reason: Word | None
    last_delivery: LastDelivery | None
    created_at: Instant
    updated_at: Instant
    secret: Word | None = None


class SingleSubscription(ShownSubscription, kw_only=True):
    """One event subscription; `secret` stands there once, when it was made."""

    component: ClassVar = "EventSubscription"

    links: SelfLink
    meta: Meta


class SubscriptionList(ListOf[ShownSubscription]):
    """The event subscriptions of an access."""

    component: ClassVar = "EventSubscriptionList"


class SentTest(WireObject, tag_field="object", tag="test_event"):
    """The id of a test event on its way."""

    component: ClassVar = "TestEvent"

    event_id: Word


class EventSubscriptions:
    """Event subscriptions: create, list, change, test and delete."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions

    def routes(self) -> tuple[Route, ...]:
        """The routes for event subscriptions (contract 15)."""
        named = (ConnectionNotFound, EventsNotGranted, GrantStreamNotAllowed, InvalidCallback)
        return (
            Route(
                "POST",
                ROOT,
                self.create,
                "Asks to be told when something changes.",
                "15",
                answer=SingleSubscription,
                success=201,
                parameters=(CONNECTION,),
                body=json_body(NewSubscription, EXAMPLE),
                errors=(*named, AmbiguousConnection, LimitReached),
                cors=True,
            ),
            Route(
                "GET",
                ROOT,
                self.list,
                "The event subscriptions of this access.",
                "15",
                answer=SubscriptionList,
                cors=True,
            ),
            Route(
                "GET",
                ONE,
                self.get,
                "One event subscription.",
                "15",
                answer=SingleSubscription,
                cors=True,
            ),
            Route(
                "PATCH",
                ONE,
                self.change,
                "Changes an event subscription.",
                "15",
                answer=SingleSubscription,
                body=json_body(ChangedSubscription, {"rotate_secret": True}),
                errors=(*named, InvalidState, VerificationPending),
                cors=True,
            ),
            Route(
                "DELETE",
                ONE,
                self.delete,
                "Deletes an event subscription.",
                "15",
                success=204,
                cors=True,
            ),
            Route(
                "POST",
                f"{ONE}/test-event",
                self.test,
                "Sends an event that says nothing.",
                "15",
                answer=SentTest,
                success=202,
                errors=(InvalidState,),
                cors=True,
            ),
        )

    def create(self, request: Request) -> Reply:
        """`POST /v1/event-subscriptions`."""
        sent = parse_body(request.body, NewSubscription)
        made = self._subscriptions.create(
            request.authority,
            sent.callback_url,
            _filters(sent.filters),
            request.parameters.texts.get("connection_id"),
            _acting(request),
            request.now_ns,
        )
        return _answer(request, made, 201)

    def list(self, request: Request) -> Reply:
        """`GET /v1/event-subscriptions`."""
        rows = self._subscriptions.of(request.authority)
        shown = [_shown(SubscriptionView(row), request.authority) for row in rows]
        return Reply(page_of(SubscriptionList, request, shown))

    def get(self, request: Request) -> Reply:
        """`GET /v1/event-subscriptions/{id}`."""
        return _answer(
            request,
            SubscriptionView(self._subscriptions.get(request.authority, request.path["id"])),
        )

    def change(self, request: Request) -> Reply:
        """`PATCH /v1/event-subscriptions/{id}`."""
        sent = parse_body(request.body, ChangedSubscription)
        changes = Changes(
            sent.enabled,
            sent.callback_url,
            None if sent.filters is None else _filters(sent.filters),
            sent.rotate_secret,
        )
        changed = self._subscriptions.change(
            request.authority, request.path["id"], changes, _acting(request), request.now_ns
        )
        return _answer(request, changed)

    def delete(self, request: Request) -> Reply:
        """`DELETE /v1/event-subscriptions/{id}`."""
        subscription_id = request.path["id"]
        self._subscriptions.delete(
            request.authority, subscription_id, _acting(request), request.now_ns
        )
        return Reply(status=204)

    def test(self, request: Request) -> Reply:
        """`POST /v1/event-subscriptions/{id}/test-event`."""
        event_id = self._subscriptions.test(
            request.authority, request.path["id"], _acting(request), request.now_ns
        )
        return Reply(SentTest(event_id=event_id), status=202)


def _filters(sent: SentFilters) -> Filters:
    return Filters(tuple(sorted(set(sent.streams))), tuple(sorted(set(sent.connection_ids))))


def _acting(request: Request) -> Acting:
    is_owner = request.authority.kind is TokenKind.OWNER
    return Acting("owner" if is_owner else "client", request.request_id)


def _answer(request: Request, shown: SubscriptionView, status: int = 200) -> Reply:
    row = _shown(shown, request.authority)
    return Reply(completed(SingleSubscription, request, row), status=status)


def _shown(shown: SubscriptionView, authority: ReadAuthority) -> ShownSubscription:
    row = shown.row
    verified_ns, sent_ns = row.verified_at_ns, row.last_delivery_at_ns
    last = None
    if sent_ns is not None:
        last = LastDelivery(at=render_instant(sent_ns), status=row.last_delivery_status or "")
    return ShownSubscription(
        subscription_id=row.subscription_id,
        authority_kind="owner" if row.grant_id is None else "client_grant",
        grant_id=row.grant_id,
        client_id=row.client_id,
        callback_url=row.callback_url,
        status=cast("Any", row.status),
        scope=_scope(row, authority),
        verified_at=None if verified_ns is None else render_instant(verified_ns),
        disabled_reason=row.disabled_reason,
        last_delivery=last,
        created_at=render_instant(row.created_at_ns),
        updated_at=render_instant(row.updated_at_ns),
        secret=None if shown.secret is None else shown_secret(shown.secret),
    )


def _scope(row: SubscriptionRow, authority: ReadAuthority) -> ShownScope:
    """What it tells of now: what was named, else all that can be read."""
    sources = sources_of(row, authority)
    origins = {(s.source.kind, s.source.id) for s in sources}
    return ShownScope(
        source=shown_source(*origins.pop()) if len(origins) == 1 else None,
        streams=row.streams or sorted({s.stream for s in sources}),
        connection_ids=row.connection_ids or sorted({s.connection_id for s in sources}),
    )
