"""The grant: the immutable consent artifact, and its stream grants.

Rule: stored bytes that do not parse as this shape are never repaired; an empty list is a
construction error and therefore denies.  The *state* of a grant lives beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

from personal_server.domain.authority import SourceId, TimeConstraint
from personal_server.errors import GrantInvalid

GRANT_VERSION = "0.1.0"


@dataclass(frozen=True, slots=True)
class StreamGrant:
    """One stream of a grant: on which connections, which fields, when, which records."""

    name: str
    instance_ids: tuple[str, ...]
    fields: tuple[str, ...]
    time_constraint: TimeConstraint | None = None
    resources: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Empty means nothing, never everything: such a stream grant cannot exist."""
        if not self.name or not self.instance_ids or not self.fields or self.resources == ():
            raise GrantInvalid("A stream grant names a stream, connections and fields.")


@dataclass(frozen=True, slots=True)
class Grant:
    """The artifact of core §7.  `expires_at` is RFC 3339 UTC or `None` for no end.

    Shapes: `client_display`, `retention`: JSON objects as agreed; `streams` is non-empty.
    """

    grant_id: str
    issued_at: str
    subject_id: str
    client_id: str
    source: SourceId
    declaration_version: str
    purpose_code: str
    access_mode: str
    streams: tuple[StreamGrant, ...]
    expires_at: str | None
    client_display: dict[str, object] | None = None
    purpose_description: str | None = None
    selection_preset: str | None = None
    retention: dict[str, object] | None = None

    def __post_init__(self) -> None:
        """A grant without streams grants nothing and is malformed."""
        if not self.streams or self.access_mode not in ("single_use", "continuous"):
            raise GrantInvalid("A grant names streams and an access mode.")


# How a grant stands when a token is resolved: readable, or why not.
ACTIVE = "active"
ENDED_REASONS = ("grant_revoked", "grant_expired", "grant_invalid")


@dataclass(frozen=True, slots=True)
class MemberGrant:
    """A grant as the token resolver hands it on (AS contract 11.3).

    `grant` is `None` when the stored form cannot be read; then `status` is `grant_invalid`.
    """

    grant_id: str
    grant: Grant | None
    connector_key: str | None
    status: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a token has become when the authorization server is done with it.

    Source: AS contract 11.3.  `grants`: one; several for a package; none for the owner.
    """

    kind: str
    subject_id: str
    client_id: str
    token_reference: str
    resource: str
    expires_at_ns: int
    grants: tuple[MemberGrant, ...] = ()
    package_id: str | None = None
