"""From a bearer token to what it stands for.

Rule: a token is judged by its row and through its grant, in one fixed order; its form is never
looked at, and nothing is cached, so that an end bites on the next request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from personal_server.consent import lifecycle
from personal_server.consent.credentials import secret_hash, token_reference
from personal_server.domain.grant import Grant, MemberGrant, Resolved, parse_grant
from personal_server.errors import (
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidToken,
    PersonalServerError,
)
from personal_server.storage.authorization_ports import AuthorizationReader, AuthorizationStore
from personal_server.storage.authorization_rows import (
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    TokenRow,
)

Clock = Callable[[], int]

_ENDED: dict[str, tuple[type[PersonalServerError], str]] = {
    lifecycle.REVOKED: (GrantRevoked, "The owner ended this access. Ask for it again."),
    lifecycle.EXPIRED: (GrantExpired, "This access reached its agreed end. Ask for it again."),
    lifecycle.INVALID: (GrantInvalid, "This access cannot be read any more. Ask for it again."),
}


@dataclass(frozen=True, slots=True)
class Judged:
    """A token's row, what it stands for, and how that stands.

    Shapes: `standing` is one of `consent.lifecycle` (`active` … `disconnected`); `usable` is
        whether the token itself is current (outcome 3 of AS contract 10.1 otherwise).
    """

    row: TokenRow
    standing: str
    usable: bool
    grants: tuple[MemberGrant, ...]
    grant_rows: tuple[GrantRow, ...]


class TokenResolver:
    """Asks the store, each time.

    When a token was last used is noted in memory, so that no read waits for a writer, and goes
    to the store with `flush_uses`.
    """

    def __init__(self, store: AuthorizationStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._uses: dict[bytes, int] = {}

    def resolve(self, token: str) -> Resolved:
        """What a good token stands for.

        Source: AS contract 10.1, in that order.
        Raises: InvalidToken, GrantRevoked, GrantExpired, GrantInvalid.
        """
        now_ns = self._clock()
        with self._store.read() as reader:
            judged = judge(reader, token, now_ns)
        if judged is None:
            raise InvalidToken("The access token is not valid.")
        if judged.standing in _ENDED:
            error, message = _ENDED[judged.standing]
            raise error(message)
        if not judged.usable or judged.standing != lifecycle.ACTIVE:
            raise InvalidToken("The access token is not valid.")
        self._uses[judged.row.token_hash] = now_ns
        return resolved(self._store.subject_id, judged)

    def flush_uses(self) -> None:
        """Write when tokens were last used."""
        uses, self._uses = self._uses, {}
        if not uses:
            return
        with self._store.write() as writer:
            for token_hash, used_at_ns in uses.items():
                writer.change(TokenRow, {"last_used_at_ns": used_at_ns}, token_hash=token_hash)


def judge(reader: AuthorizationReader, token: str, now_ns: int) -> Judged | None:
    """The row of a token and how everything behind it stands; `None` if there is no such row."""
    row = reader.get(TokenRow, token_hash=secret_hash(token))
    if row is None:
        return None
    usable = _usable(reader, row, now_ns)
    if row.package_id is not None:
        package = reader.get(PackageRow, package_id=row.package_id)
        grant_rows = () if package is None else package_grant_rows(reader, package)
        members = tuple(member_grant(grant, now_ns) for grant in grant_rows)
        reason = "owner" if package is None else package.reason
        standing = lifecycle.package_standing(
            reason, [grant_standing(grant, now_ns) for grant in grant_rows]
        )
        return Judged(row, standing, usable, members, grant_rows)
    if row.grant_id is not None:
        grant_row = reader.get(GrantRow, grant_id=row.grant_id)
        if grant_row is None:
            return Judged(row, lifecycle.INVALID, usable, (), ())
        standing = grant_standing(grant_row, now_ns)
        return Judged(row, standing, usable, (member_grant(grant_row, now_ns),), (grant_row,))
    return Judged(row, lifecycle.ACTIVE, usable, (), ())


def resolved(subject_id: str, judged: Judged) -> Resolved:
    """What a judged token hands on to the resource server.  Source: AS contract 11.3."""
    row = judged.row
    return Resolved(
        kind=row.kind,
        subject_id=subject_id,
        client_id=row.client_id,
        token_reference=token_reference(row.token_hash),
        resource=row.resource,
        expires_at_ns=row.expires_at_ns,
        grants=judged.grants,
        package_id=row.package_id,
    )


def grant_standing(row: GrantRow, now_ns: int) -> str:
    """How a stored grant stands now."""
    readable = readable_grant(row) is not None
    return lifecycle.standing(row.reason, row.expires_at_ns, readable, now_ns)


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
    decided = {row.grant_id: row for row in reader.rows(GrantRow, revision=package.revision)}
    members = reader.rows(PackageMemberRow, package_id=package.package_id)
    return tuple(decided[member.grant_id] for member in members if member.grant_id in decided)


def _usable(reader: AuthorizationReader, row: TokenRow, now_ns: int) -> bool:
    if row.revoked_at_ns is not None or row.expires_at_ns <= now_ns:
        return False
    if row.family_id is None:
        return True
    family = reader.get(FamilyRow, family_id=row.family_id)
    if family is None or family.revoked_at_ns is not None:
        return False
    return family.absolute_end_ns is None or now_ns < family.absolute_end_ns
