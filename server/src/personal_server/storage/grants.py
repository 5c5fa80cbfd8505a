"""Stored grants as values, and how they stand."""

from __future__ import annotations

from functools import lru_cache

from pdpp_kernel.errors import GrantInvalid
from personal_server.consent import lifecycle
from personal_server.consent.standing import standing
from personal_server.domain.grant import Grant, MemberGrant, parse_grant
from personal_server.storage.authorization_rows import GrantRow, PackageMemberRow, PackageRow
from personal_server.storage.ports.authorization_store import AuthorizationReader


def grant_standing(row: GrantRow, now_ns: int) -> str:
    """How a stored grant stands now."""
    readable = readable_grant(row) is not None
    return standing(row.reason, row.hold, row.expires_at_ns, readable, now_ns)


def readable_grant(row: GrantRow) -> Grant | None:
    """The grant of a row, or `None` if its bytes are not one (they are never repaired)."""
    return _parsed(row.grant)


@lru_cache(maxsize=1_024)
def _parsed(stored: bytes) -> Grant | None:
    """Stored bytes never change their meaning, so they are read once."""
    try:
        return parse_grant(stored)
    except GrantInvalid:
        return None


def member_grant(row: GrantRow, now_ns: int) -> MemberGrant:
    """A stored grant with its status in the words of the resource server."""
    status = grant_standing(row, now_ns)
    ended = lifecycle.REVOKED if status == lifecycle.DISCONNECTED else status
    return MemberGrant(
        grant_id=row.grant_id,
        grant=readable_grant(row),
        connector_key=row.connector_key,
        status=ended,
    )


def package_grant_rows(reader: AuthorizationReader, package: PackageRow) -> tuple[GrantRow, ...]:
    """The member grants of a package, in the order of the decision that they share."""
    decided = {
        row.grant_id: row
        for row in reader.rows(GrantRow, GrantRow.revision.equals(package.revision))
    }
    members = reader.rows(PackageMemberRow, PackageMemberRow.package_id.equals(package.package_id))
    return tuple(decided[member.grant_id] for member in members if member.grant_id in decided)
