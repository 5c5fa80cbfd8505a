"""An approved review becomes rows: grants, their package, the artifact, and what it ends.

Rule: called inside the transaction of the decision, by the page and by the command line alike.
Source: AS contract 6.3, 11.
"""

from __future__ import annotations

from dataclasses import dataclass

from personal_server.consent.credentials import GRANT, PACKAGE, RandomBytes, new_id
from personal_server.consent.review import canonical
from personal_server.consent.terms import grant_of, render_details
from personal_server.domain.grant import Grant, render_grant
from personal_server.operations.auditing import Acting, Subject, audit
from personal_server.operations.reviewing import Review
from personal_server.operations.revoking import end_access
from personal_server.storage.authorization import (
    AuthorizationWriter,
    ClientRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    ReviewArtifactRow,
)


@dataclass(frozen=True, slots=True)
class GrantIds:
    """What was made: one grant, or a package; `grants` in the order of the request."""

    grants: tuple[Grant, ...]
    grant_id: str | None
    package_id: str | None

    @property
    def details(self) -> tuple[dict[str, object], ...]:
        """The grants as `authorization_details`."""
        return tuple(render_details(grant) for grant in self.grants)


def issue_grants(
    writer: AuthorizationWriter,
    review: Review,
    acting: Acting,
    channel: str,
    random_bytes: RandomBytes,
    now_ns: int,
) -> GrantIds:
    """Write what a complete review decides."""
    revision, artifact = review.revision, review.artifact
    if revision is None or artifact is None:
        raise AssertionError("Only complete reviews are issued.")
    writer.insert(
        ReviewArtifactRow(
            revision=revision,
            artifact=canonical(artifact),
            request_id=review.asked.facts.request_id,
            decided_at_ns=now_ns,
            channel=channel,
        )
    )
    client_id = review.asked.client.client_id
    grants = tuple(
        grant_of(
            entry,
            review.terms,
            grant_id=new_id(GRANT, random_bytes),
            subject_id=review.asked.facts.subject_id,
            client_id=client_id,
            client_display=review.asked.display,
            now_ns=now_ns,
        )
        for entry in review.terms.entries
    )
    for grant, entry in zip(grants, review.terms.entries, strict=True):
        connector_key = entry.offer.declaration.connector_key
        _insert_grant(writer, review, grant, connector_key, now_ns)
        subject = Subject(client_id, grant.grant_id)
        audit(writer, "grant.created", acting, now_ns, subject, access_mode=grant.access_mode)
    package_id = _package(writer, grants, revision, client_id, acting, random_bytes, now_ns)
    for held_id in review.terms.ends:
        end_access(writer, held_id, "replaced", acting, now_ns)
    writer.change(
        ClientRow, {"first_approved_at_ns": now_ns}, client_id=client_id, first_approved_at_ns=None
    )
    return GrantIds(grants, None if package_id else grants[0].grant_id, package_id)


def _insert_grant(
    writer: AuthorizationWriter, review: Review, grant: Grant, connector_key: str, now_ns: int
) -> None:
    writer.insert(
        GrantRow(
            grant_id=grant.grant_id,
            grant=render_grant(grant),
            client_id=grant.client_id,
            connector_key=connector_key,
            access_mode=grant.access_mode,
            issued_at_ns=now_ns,
            expires_at_ns=review.terms.expires_at_ns,
            revision=review.revision or "",
        )
    )


def _package(
    writer: AuthorizationWriter,
    grants: tuple[Grant, ...],
    revision: str,
    client_id: str,
    acting: Acting,
    random_bytes: RandomBytes,
    now_ns: int,
) -> str | None:
    if len(grants) == 1:
        return None
    package_id = new_id(PACKAGE, random_bytes)
    writer.insert(
        PackageRow(
            package_id=package_id, client_id=client_id, created_at_ns=now_ns, revision=revision
        )
    )
    for position, grant in enumerate(grants):
        writer.insert(
            PackageMemberRow(package_id=package_id, position=position, grant_id=grant.grant_id)
        )
    subject = Subject(client_id, package_id=package_id)
    audit(writer, "package.created", acting, now_ns, subject, members=len(grants))
    return package_id
