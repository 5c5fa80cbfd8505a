"""Who asks and why, as the consent page shows it.  Pure.  Source: AS contract 7, items 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from personal_server.consent.client_registration import DOCUMENT, DYNAMIC
from personal_server.consent.offers import EntryOffer, Ungrantable
from personal_server.consent.selections import AI_TRAINING
from personal_server.console import consent_words
from personal_server.console.words import minute_of, purpose_label, redirect_place
from personal_server.granting.reviews import Review

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class WhoView:
    """The app; `name` is its own word unless `name_checked`."""

    name: str
    name_checked: bool
    trust_kind: str
    trust: str
    identity: str
    leads_to: str
    warnings: tuple[str, ...]
    device: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PromiseView:
    """Declared, not enforced; `of` names the sources where they differ."""

    of: tuple[str, ...]
    purpose: str | None
    code: str
    description: str | None
    retention: str | None
    trains: bool


def who_view(review: Review) -> WhoView:
    """The app that asks, with what is known and what to be wary of."""
    client, redirect = review.asked.client, review.asked.redirect_uri
    host = urlsplit(client.client_id).hostname or ""
    kind, trust = consent_words.trust_mark(client.registration, client.client_id)
    name = str(review.asked.display.get("name") or client.client_id)
    return WhoView(
        name=name,
        name_checked=client.registration not in (DYNAMIC, DOCUMENT),
        trust_kind=kind,
        trust=trust,
        identity=host if client.registration == DOCUMENT else client.client_id,
        leads_to=redirect_place(redirect),
        warnings=_warnings(review, host),
        device=_device(review),
    )


def _warnings(review: Review, host: str) -> tuple[str, ...]:
    client, redirect = review.asked.client, review.asked.redirect_uri
    found: list[str] = []
    if client.registration == DYNAMIC:
        found.append("Nobody has checked who this app is. Allow it only if you started this.")
    if client.registration == DOCUMENT:
        redirect_host = urlsplit(redirect or "").hostname
        if redirect_host in _LOOPBACK:
            if all(urlsplit(uri).hostname in _LOOPBACK for uri in client.redirect_uris):
                found.append("Any program on this computer could receive this access.")
        elif redirect_host and redirect_host != host:
            found.append("The answer goes to another domain than the one that was checked.")
    return tuple(found)


def _device(review: Review) -> tuple[tuple[str, str], ...]:
    row = review.request
    if row is None or row.flow == "code":
        return ()
    return (
        ("Asked from", row.address or "an unknown address"),
        ("With", row.user_agent or "an unknown program"),
        ("At", minute_of(row.created_at_ns)),
    )


def promise_views(review: Review) -> tuple[PromiseView, ...]:
    """What the app declares; entries that declare the same share one."""
    groups: dict[tuple[str, str | None, str | None], list[str]] = {}
    for offer in review.offers:
        selection = offer.selection
        retention = consent_words.retention(selection.retention)
        key = (selection.purpose_code, selection.purpose_description, retention)
        groups.setdefault(key, []).append(source_name(offer))
    return tuple(
        PromiseView(
            of=tuple(names) if len(groups) > 1 else (),
            purpose=purpose_label(code),
            code=code,
            description=description,
            retention=retention,
            trains=code == AI_TRAINING,
        )
        for (code, description, retention), names in groups.items()
    )


def source_name(offer: EntryOffer | Ungrantable) -> str:
    """The name of a source: its publisher's, or what the client called it."""
    if isinstance(offer, EntryOffer):
        return offer.declaration.display_name
    return offer.selection.source_id
