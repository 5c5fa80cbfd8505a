"""Grants and packages as the owner's pages show them.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from personal_server.console.consent_words import trust_mark
from personal_server.console.words import day_of, field_words
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import Grant
from personal_server.granting.holdings import Held, HeldGrant
from personal_server.storage.authorization import AuditRow
from personal_server.storage.catalog import Catalog

REASONS = {
    "owner": "you ended it",
    "replaced": "replaced by a newer one",
    "client_blocked": "the app was blocked",
    "client_disconnected": "the app gave it back",
    "code_replay": "its code was used twice",
    "refresh_reuse": "an old refresh token was used again",
    "not_collected": "the app never collected it",
    "idle": "not used for too long",
}
EVENTS = {
    "request.approved": "You allowed it",
    "grant.created": "Access was granted",
    "grant.consumed": "Its one token was collected",
    "grant.revoked": "Access ended",
    "grant.expired": "Access reached its end",
    "package.created": "Access to several sources was granted",
    "package.revoked": "Access ended",
    "code.redeemed": "The app collected its access",
    "code.replayed": "Its code was presented a second time",
    "code.burned": "Its code was presented wrongly",
    "device.collected": "The device collected its access",
    "token.issued": "A token was issued",
    "token.revoked": "A token was given back",
    "refresh.rotated": "The token was renewed",
    "refresh.overlap": "The token was renewed twice at once",
    "refresh.reused": "An old refresh token was presented",
    "refresh.wrong_client": "Another app presented its refresh token",
}
ACTORS = {
    "owner": "you",
    "client": "the app",
    "server": "this server",
    "local_cli": "this computer",
}


@dataclass(frozen=True, slots=True)
class TokenView:
    """A token by its reference; the reference opens nothing."""

    reference: str
    issued_at_ns: int
    expires_at_ns: int
    last_used_at_ns: int | None
    revoked_at_ns: int | None


@dataclass(frozen=True, slots=True)
class GivenStream:
    """One stream of a grant, in words."""

    name: str
    label: str
    accounts: tuple[str, ...]
    fields: tuple[str, ...]
    window: str
    named_records: int


@dataclass(frozen=True, slots=True)
class GivenSource:
    """One grant of a holding."""

    held: HeldGrant
    name: str
    purpose: str | None
    streams: tuple[GivenStream, ...]


@dataclass(frozen=True, slots=True)
class HeldView:
    """A grant or package with everything named."""

    held: Held
    trust_kind: str
    trust: str
    ended_because: str | None
    sources: tuple[GivenSource, ...]

    @property
    def source_names(self) -> str:
        """The sources in one line."""
        return ", ".join(dict.fromkeys(source.name for source in self.sources))


def held_view(held: Held, catalog: Catalog) -> HeldView:
    """The view of a holding."""
    kind, trust = trust_mark(held.registration, held.client_id)
    return HeldView(
        held=held,
        trust_kind=kind,
        trust=trust,
        ended_because=REASONS.get(held.reason or "") if held.status == "revoked" else None,
        sources=tuple(_source(grant, catalog) for grant in held.grants),
    )


def event_words(row: AuditRow) -> str:
    """One line of the timeline."""
    said = EVENTS.get(row.event, row.event.replace(".", " ").replace("_", " "))
    because = REASONS.get(str(row.detail.get("reason", "")))
    by = because or f"by {ACTORS.get(row.actor, row.actor)}"
    return said if said.startswith("You ") else f"{said} ({by})"


def window_of(bound: TimeConstraint | None) -> str:
    """A granted time window in words."""
    if bound is None:
        return "any age"
    name = field_words(bound.field)
    since = "" if bound.since_ns is None else f" from {day_of(bound.since_ns)}"
    until = "" if bound.until_ns is None else f" before {day_of(bound.until_ns)}"
    return f"{name}{since}{until}"


def _source(held: HeldGrant, catalog: Catalog) -> GivenSource:
    grant = held.grant
    if grant is None:
        return GivenSource(held, held.connector_key, None, ())
    declaration = catalog.declarations.get(grant.source.id)
    name = declaration.display_name if declaration else held.connector_key
    return GivenSource(held, name, grant.purpose_description, _streams(grant, catalog))


def _streams(grant: Grant, catalog: Catalog) -> tuple[GivenStream, ...]:
    declaration = catalog.declarations.get(grant.source.id)
    accounts = {c.connection_id: c.display_name or c.connection_id for c in catalog.connections}
    given: list[GivenStream] = []
    for stream in grant.streams:
        declared = declaration.streams.get(stream.name) if declaration else None
        given.append(
            GivenStream(
                name=stream.name,
                label=declared.label if declared else stream.name,
                accounts=tuple(accounts.get(c, "deleted account") for c in stream.instance_ids),
                fields=tuple(field_words(name) for name in stream.fields),
                window=window_of(stream.time_constraint),
                named_records=len(stream.resources or ()),
            )
        )
    return tuple(given)
