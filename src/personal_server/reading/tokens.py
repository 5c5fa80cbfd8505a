"""From a bearer token to what it stands for.

Rule: a token is judged by its row and through its grant, in one fixed order; its form is never
looked at, and nothing is cached, so that an end bites on the next request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from personal_server.consent import lifecycle
from personal_server.consent.credentials import secret_hash, token_reference
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.grant import MemberGrant, Resolved
from personal_server.enforcement.authority import read_authority
from personal_server.errors import (
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidToken,
    PersonalServerError,
)
from personal_server.storage.authorization import (
    AuthorizationReader,
    AuthorizationStore,
    FamilyRow,
    GrantRow,
    PackageRow,
    TokenRow,
)
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.grants import grant_standing, member_grant, package_grant_rows
from personal_server.storage.ports import Snapshots

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
        whether the token itself is current (outcome 3 of docs/contract/authorization-server.md 10.1
        otherwise).
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

        Source: docs/contract/authorization-server.md 10.1, in that order.
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
                writer.change(
                    TokenRow,
                    [TokenRow.last_used_at_ns.to(used_at_ns)],
                    TokenRow.token_hash.equals(token_hash),
                )


def judge(reader: AuthorizationReader, token: str, now_ns: int) -> Judged | None:
    """The row of a token and how everything behind it stands; `None` if there is no such row."""
    row = reader.get(TokenRow, TokenRow.token_hash.equals(secret_hash(token)))
    if row is None:
        return None
    usable = _usable(reader, row, now_ns)
    if row.package_id is not None:
        package = reader.get(PackageRow, PackageRow.package_id.equals(row.package_id))
        grant_rows = () if package is None else package_grant_rows(reader, package)
        members = tuple(member_grant(grant, now_ns) for grant in grant_rows)
        reason = "owner" if package is None else package.reason
        standing = lifecycle.package_standing(
            reason, [grant_standing(grant, now_ns) for grant in grant_rows]
        )
        return Judged(row, standing, usable, members, grant_rows)
    if row.grant_id is not None:
        grant_row = reader.get(GrantRow, GrantRow.grant_id.equals(row.grant_id))
        if grant_row is None:
            return Judged(row, lifecycle.INVALID, usable, (), ())
        standing = grant_standing(grant_row, now_ns)
        return Judged(row, standing, usable, (member_grant(grant_row, now_ns),), (grant_row,))
    return Judged(row, lifecycle.ACTIVE, usable, (), ())


def resolved(subject_id: str, judged: Judged) -> Resolved:
    """What a judged token hands on to the resource server.

    Source: docs/contract/authorization-server.md 11.3.
    """
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


def _usable(reader: AuthorizationReader, row: TokenRow, now_ns: int) -> bool:
    if row.revoked_at_ns is not None or row.expires_at_ns <= now_ns:
        return False
    if row.family_id is None:
        return True
    family = reader.get(FamilyRow, FamilyRow.family_id.equals(row.family_id))
    if family is None or family.revoked_at_ns is not None:
        return False
    return family.absolute_end_ns is None or now_ns < family.absolute_end_ns


# Identifying: from a bearer token to the read authority it stands for now.
#
# Rule: token, grants, connections and declarations are looked at on every request, so that an end
# bites with the next one.


@dataclass(frozen=True, slots=True)
class Identified:
    """What a token stands for; `refusal` says why its grant or package cannot be read at all.

    A refusal is one of GrantRevoked, GrantExpired, GrantInvalid.
    Source: docs/contract/resource-server.md 3.
    """

    authority: ReadAuthority
    refusal: PersonalServerError | None = None


class Identifier:
    """Asks the authorization store and the catalog of records, each time.

    `accepts_resource` says whether a token issued for that resource reaches `/v1` here.
    """

    def __init__(
        self,
        resolver: TokenResolver,
        authorization: AuthorizationStore,
        records: Snapshots,
        declarations: KnownDeclarations,
        accepts_resource: Callable[[str], bool],
    ) -> None:
        self._resolver = resolver
        self._authorization = authorization
        self._records = records
        self._declarations = declarations
        self._accepts_resource = accepts_resource

    def __call__(self, token: str) -> Identified:
        """The read authority of a token.

        Source: docs/contract/resource-server.md 3 and 4.2.
        Raises: InvalidToken, StorageUnavailable.
        """
        try:
            found = self._resolver.resolve(token)
        except (GrantRevoked, GrantExpired, GrantInvalid) as refusal:
            return Identified(self._refused(token), refusal)
        if found.kind not in _KINDS or not self._accepts_resource(found.resource):
            raise InvalidToken("The access token is for another resource. Authorize again.")
        with self._records.snapshot() as snapshot:
            connections = snapshot.connections()
            declarations = self._declarations.current(snapshot.declarations())
        return Identified(read_authority(found, connections, declarations))

    def _refused(self, token: str) -> ReadAuthority:
        """Whose refusal it is: an authority that can read nothing."""
        with self._authorization.read() as reader:
            judged = judge(reader, token, 0)
        if judged is None:
            raise InvalidToken("The access token is not valid.")
        return read_authority(resolved(self._authorization.subject_id, judged), (), {})


_KINDS = frozenset(kind.value for kind in TokenKind)
