"""From approved terms to grants, and from grants to what a token answer shows of them."""

from __future__ import annotations

from collections.abc import Mapping

from personal_server.consent.narrowing import EntryTerms, Terms
from personal_server.domain.authority import SourceId
from personal_server.domain.grant import Grant, render_stream_grant
from personal_server.domain.selection import DATA_ACCESS
from personal_server.domain.values import instant_text


def grant_of(
    entry: EntryTerms,
    terms: Terms,
    *,
    grant_id: str,
    subject_id: str,
    client_id: str,
    client_display: Mapping[str, object],
    now_ns: int,
) -> Grant:
    """The grant that a kept entry becomes.  Source: AS contract 11.1."""
    selection, declaration = entry.offer.selection, entry.offer.declaration
    return Grant(
        grant_id=grant_id,
        issued_at=instant_text(now_ns),
        subject_id=subject_id,
        client_id=client_id,
        client_display=dict(client_display) or None,
        source=SourceId(declaration.source_kind, declaration.source_id),
        declaration_version=declaration.version,
        purpose_code=selection.purpose_code,
        purpose_description=selection.purpose_description,
        access_mode=terms.access_mode,
        streams=entry.streams,
        expires_at=None if terms.expires_at_ns is None else instant_text(terms.expires_at_ns),
        selection_preset=selection.selection_preset,
        retention=None if selection.retention is None else dict(selection.retention),
    )


def render_details(grant: Grant) -> dict[str, object]:
    """A grant as one entry of `authorization_details`.  Source: AS contract 9."""
    details: dict[str, object] = {
        "type": DATA_ACCESS,
        "source": {"kind": grant.source.kind, "id": grant.source.id},
        "purpose_code": grant.purpose_code,
        "access_mode": grant.access_mode,
        "streams": [render_stream_grant(stream) for stream in grant.streams],
    }
    optional = {
        "purpose_description": grant.purpose_description,
        "retention": grant.retention,
    }
    details.update({name: value for name, value in optional.items() if value is not None})
    return details
