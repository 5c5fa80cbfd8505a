"""The review artifact: everything a decision will fix, and nothing that may still move.

Rule: what the owner sees is this artifact, what is approved is its revision; equal revisions mean
equal decisions.  Source: docs/contract/authorization-server.md 6.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import rfc8785

from pdpp_kernel.values import instant_text
from personal_server.consent.credentials import base64url
from personal_server.consent.offers import EntryOffer, Ungrantable
from personal_server.consent.selections import AI_TRAINING
from personal_server.consent.terms import EntryTerms, Terms
from personal_server.domain.grant import render_stream_grant

VERSION = "pdpp.review/1"
REVISION_PREFIX = "rv1:sha256:"

Artifact = dict[str, object]


class ClientFacts(msgspec.Struct, frozen=True):
    """The client as the decision binds it."""

    client_id: str
    registration: str
    client_display: Mapping[str, object]
    redirect_uri: str | None
    auth_method: str

    def rendered(self) -> dict[str, object]:
        """The member `client` of the artifact."""
        return {
            "client_id": self.client_id,
            "registration": self.registration,
            "client_display": dict(self.client_display),
            "redirect_uri": self.redirect_uri,
            "auth_method": self.auth_method,
        }


class RequestFacts(msgspec.Struct, frozen=True):
    """The request as the decision binds it; `replaces` is the access that a change changes."""

    request_id: str
    origin: str
    subject_id: str
    resource: str
    replaces: str | None = None


def build_artifact(request: RequestFacts, client: ClientFacts, terms: Terms) -> Artifact:
    """The artifact of complete terms; that of a change names what it `replaces`."""
    replaces = {} if request.replaces is None else {"replaces": request.replaces}
    return {
        "version": VERSION,
        "request": request.request_id,
        "origin": request.origin,
        "subject": {"id": request.subject_id},
        "client": client.rendered(),
        "resource": request.resource,
        "access_mode": terms.access_mode,
        "expires_at": None if terms.expires_at_ns is None else instant_text(terms.expires_at_ns),
        "sources": [_source(entry) for entry in terms.entries],
        "ai_training_consented": trains(terms),
        "ends": sorted(terms.ends),
        **replaces,
    }


def trains(terms: Terms) -> bool:
    """Whether approving these terms means consent to training."""
    return any(entry.offer.selection.purpose_code == AI_TRAINING for entry in terms.entries)


def canonical(artifact: Mapping[str, object]) -> bytes:
    """The bytes that are digested and kept (RFC 8785)."""
    return rfc8785.dumps(dict(artifact))  # pyright: ignore[reportArgumentType] -- JSON by making


def revision_of(artifact: Mapping[str, object]) -> str:
    """The revision of an artifact."""
    return REVISION_PREFIX + base64url(hashlib.sha256(canonical(artifact)).digest())


def facts_text(
    client: ClientFacts,
    redirect_uris: Sequence[str],
    offers: Sequence[EntryOffer | Ungrantable],
    replaces: str | None = None,
) -> str:
    """What must not change between page and approval, whatever the owner chooses.

    Shapes: canonical JSON; kept in words, so that a page can say which of it changed.
    """
    sources = [
        {
            "source": offer.selection.source_id,
            "declaration": offer.declaration.digest,
            "connections": [connection.connection_id for connection in offer.connections],
        }
        for offer in offers
        if isinstance(offer, EntryOffer)
    ]
    facts = {**client.rendered(), "redirect_uris": list(redirect_uris)}
    changed = {} if replaces is None else {"replaces": replaces}
    return canonical({"client": facts, "sources": sources, **changed}).decode()


def _source(entry: EntryTerms) -> dict[str, object]:
    selection, declaration = entry.offer.selection, entry.offer.declaration
    claims = selection.commitments
    return {
        "source": {"kind": declaration.source_kind, "id": declaration.source_id},
        "source_declaration": {"version": declaration.version, "digest": declaration.digest},
        "selection_preset": selection.selection_preset,
        "purpose_code": selection.purpose_code,
        "purpose_description": selection.purpose_description,
        "retention": None if selection.retention is None else dict(selection.retention),
        "client_claims": None if claims is None else {"commitments": list(claims)},
        "streams": [render_stream_grant(stream) for stream in entry.streams],
    }
