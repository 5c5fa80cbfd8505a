"""Grants and packages as the owner's pages show them.  Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from pdpp_kernel.texts import Day, Joined, Text, message
from personal_server.console.content_limits import limits_said
from personal_server.console.disclosure_lines import alarm_words
from personal_server.console.words import HELD_STATUSES, declared_name, field_words, trust_mark
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import Grant
from personal_server.granting.holdings import HeldGrant, Holding
from personal_server.storage.authorization_rows import AuditRow, ReadingAlarmRow
from personal_server.storage.catalog import Catalog

REASONS: Mapping[str, Text] = {
    "owner": message("you ended this access"),
    "replaced": message("replaced by a newer access"),
    "client_blocked": message("you blocked the app"),
    "client_disconnected": message("the app disconnected"),
    "code_replay": message("the app's authorization code was used twice"),
    "refresh_reuse": message("an old refresh token of the app was used again"),
    "not_collected": message("the app never connected"),
    "idle": message("the app did not use this access for too long"),
    "restored": message("your records were restored from a backup"),
}
EVENTS: Mapping[str, Text] = {
    "request.approved": message("You allowed this access"),
    "grant.created": message("Access was granted"),
    "grant.consumed": message("The server issued a token"),
    "grant.revoked": message("The access ended"),
    "grant.expired": message("The access expired"),
    "grant.paused": message("The access was paused"),
    "grant.resumed": message("The access was resumed"),
    "grant.changed": message("The access was changed"),
    "grant.renamed": message("The access was renamed"),
    "reading.unusual": message("The server noticed unusual reading"),
    "package.created": message("Access to several sources was granted"),
    "package.changed": message("Access to several sources was changed"),
    "package.revoked": message("The access ended"),
    "subscription.created": message("The app asked for notifications"),
    "subscription.changed": message("The app's notifications were changed"),
    "subscription.tested": message("The app asked for a test notification"),
    "subscription.failed": message("The server could not deliver a notification"),
    "subscription.ended": message("The app is no longer notified of new records"),
    "subscription.deleted": message("The app's notifications were deleted"),
    "code.redeemed": message("The app connected"),
    "code.replayed": message("The app's authorization code was used a second time"),
    "code.burned": message("The app's authorization code was used with wrong details"),
    "device.collected": message("The device connected"),
    "token.issued": message("The server issued a token"),
    "token.revoked": message("The app returned its token"),
    "refresh.rotated": message("The app renewed its token"),
    "refresh.repeated": message("The server sent a renewed token again"),
    "refresh.reused": message("The app used an old refresh token"),
    "refresh.wrong_client": message("Another app used this app's refresh token"),
    "refresh.wrong_key": message(
        "The app's refresh token was used without the key that belongs to it"
    ),
}
ACTORS: Mapping[str, Text] = {
    "owner": message("you"),
    "client": message("the app itself"),
    "server": message("this server"),
    "local_cli": message("this computer"),
}


class TokenView(msgspec.Struct, frozen=True):
    """A token by its reference; the reference opens nothing."""

    reference: str
    issued_at_ns: int
    expires_at_ns: int
    last_used_at_ns: int | None
    revoked_at_ns: int | None


class TokenViews(msgspec.Struct, frozen=True):
    """The newest tokens, and how many there are."""

    newest: tuple[TokenView, ...]
    count: int


class EventView(msgspec.Struct, frozen=True):
    """A line of the history."""

    number: int
    at_ns: int
    said: Text
    event: str
    actor: str


class GivenStream(msgspec.Struct, frozen=True):
    """One stream of a grant, in words."""

    name: str
    label: str
    accounts: tuple[Text, ...]
    fields: tuple[str, ...]
    window: Text
    named_records: int
    limited: tuple[Text, ...]


class GivenSource(msgspec.Struct, frozen=True):
    """One grant of a holding."""

    held: HeldGrant
    name: str
    purpose: str | None
    streams: tuple[GivenStream, ...]

    @property
    def status(self) -> Text:
        """What has become of it."""
        return HELD_STATUSES.get(self.held.status, self.held.status)


class HeldView(msgspec.Struct, frozen=True):
    """A grant or package with everything named."""

    held: Holding
    trust_kind: str
    trust: Text
    ended_because: Text | None
    sources: tuple[GivenSource, ...]

    @property
    def status(self) -> Text:
        """What has become of it."""
        return HELD_STATUSES.get(self.held.status, self.held.status)

    @property
    def source_names(self) -> str:
        """The sources in one line."""
        return ", ".join(dict.fromkeys(source.name for source in self.sources))


def held_view(holding: Holding, catalog: Catalog) -> HeldView:
    """The view of a holding."""
    kind, trust = trust_mark(holding.registration, holding.client_id)
    return HeldView(
        held=holding,
        trust_kind=kind,
        trust=trust,
        ended_because=REASONS.get(holding.reason or "") if holding.status == "revoked" else None,
        sources=tuple(_source(grant, catalog) for grant in holding.grants),
    )


def event_words(row: AuditRow) -> Text:
    """One line of the timeline."""
    words = EVENTS.get(row.event, row.event.replace(".", " ").replace("_", " "))
    if row.event == "request.approved":
        return words
    because = REASONS.get(str(row.detail.get("reason", "")))
    if because is not None:
        return Joined((words, " (", because, ")"), "")
    return message("%(what)s (by %(who)s)", what=words, who=ACTORS.get(row.actor, row.actor))


def window_of(bound: TimeConstraint | None) -> Text:
    """A granted time window in words; its ends are instants, so they are told to the minute."""
    if bound is None:
        return message("records of any age")
    name, (since_ns, until_ns) = field_words(bound.field), (bound.since_ns, bound.until_ns)
    if since_ns is None and until_ns is None:
        return name
    if until_ns is None:
        return message("%(field)s from %(since)s", field=name, since=Day(since_ns or 0))
    if since_ns is None:
        return message("%(field)s before %(until)s", field=name, until=Day(until_ns))
    return message(
        "%(field)s from %(since)s before %(until)s",
        field=name,
        since=Day(since_ns),
        until=Day(until_ns),
    )


def _source(held_grant: HeldGrant, catalog: Catalog) -> GivenSource:
    grant = held_grant.grant
    if grant is None:
        return GivenSource(held_grant, held_grant.connector_key, None, ())
    declaration = catalog.declarations.get(grant.source.id)
    name = declared_name(declaration.display_name if declaration else held_grant.connector_key)
    return GivenSource(held_grant, name, grant.purpose_description, _streams(grant, catalog))


_DELETED = message("a deleted account")


def _streams(grant: Grant, catalog: Catalog) -> tuple[GivenStream, ...]:
    declaration = catalog.declarations.get(grant.source.id)
    accounts: dict[str, Text] = {
        c.connection_id: c.display_name or c.connection_id for c in catalog.connections
    }
    streams: list[GivenStream] = []
    for stream in grant.streams:
        declared = declaration.streams.get(stream.name) if declaration else None
        streams.append(
            GivenStream(
                name=stream.name,
                label=declared_name(declared.label) if declared else stream.name,
                accounts=tuple(
                    accounts.get(c, message("a deleted account")) for c in stream.instance_ids
                ),
                fields=tuple(field_words(name) for name in stream.fields),
                window=window_of(stream.time_constraint),
                named_records=len(stream.resources or ()),
                limited=limits_said(stream.only),
            )
        )
    return tuple(streams)


class AlarmView(msgspec.Struct, frozen=True):
    """Something unusual, in words."""

    at_ns: int
    held_id: str
    who: str
    rule: str
    said: Text
    paused: bool


def alarm_view(row: ReadingAlarmRow, names: Mapping[str, str]) -> AlarmView:
    """The view of an alarm; `names` of clients by id."""
    client_name = names.get(row.client_id or "", row.client_id or row.held_id)
    return AlarmView(row.at_ns, row.held_id, client_name, row.rule, alarm_words(row), row.paused)
