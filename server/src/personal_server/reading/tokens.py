"""From a bearer token to what it stands for.

Rule: a token is judged by its row and through its grant, in one fixed order; its form is never
looked at.  What was read is known for as long as nothing at all is written, by whichever process,
so that an end bites on the next request.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pdpp_kernel.errors import (
    GrantExpired,
    GrantInvalid,
    GrantPaused,
    GrantRevoked,
    InvalidToken,
    PersonalServerError,
)
from pdpp_kernel.values import MAX_INTEGER
from personal_server.consent import lifecycle
from personal_server.consent.credentials import secret_hash, token_reference
from personal_server.consent.standing import package_standing
from personal_server.domain.authority import ReadingBudget, TokenKind
from personal_server.domain.grant import MemberGrant, Resolved
from personal_server.domain.possession import PresentedToken
from personal_server.reading.proofs import Proofs
from personal_server.storage.authorization_rows import (
    FamilyRow,
    GrantRow,
    PackageRow,
    ReadingLimitsRow,
    TokenRow,
)
from personal_server.storage.derived import once
from personal_server.storage.grants import grant_standing, member_grant, package_grant_rows
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
)

Clock = Callable[[], int]

_ERROR_OF_STANDING: dict[str, tuple[type[PersonalServerError], str]] = {
    lifecycle.REVOKED: (GrantRevoked, "The owner ended this access. Ask for access again."),
    lifecycle.EXPIRED: (GrantExpired, "This access reached its agreed end. Ask for access again."),
    lifecycle.PAUSED: (GrantPaused, "The owner paused this access. Try again later."),
    lifecycle.INVALID: (GrantInvalid, "This access can no longer be read. Ask for access again."),
}


class JudgedToken(msgspec.Struct, frozen=True):
    """A token's row, what it stands for, and how that stands.

    Shapes: `standing` is one of `consent.lifecycle` (`active` … `disconnected`); `usable` is
        whether the token itself is current (outcome 4 of docs/contract/authorization-server.md 10.1
        otherwise).
    """

    row: TokenRow
    standing: str
    usable: bool
    grants: tuple[MemberGrant, ...]
    grant_rows: tuple[GrantRow, ...]
    limits: ReadingLimitsRow | None = None
    lineage: str | None = None


class TokenState(msgspec.Struct, frozen=True):
    """What a token stood for when it was looked up; `refusal` says why that cannot be read at all.

    A refusal is one of GrantRevoked, GrantExpired, GrantPaused, GrantInvalid.
    Source: docs/contract/resource-server.md 3.
    """

    resolved: Resolved
    refusal: PersonalServerError | None = None


class TokenUses:
    """When tokens were last used: noted in memory, so that no read waits for a writer.

    A first use decides whether a refresh token may be answered again (docs/decisions.md C29), so
    that a process which is killed must not forget it for long.
    """

    def __init__(self, store: AuthorizationStore) -> None:
        self._store = store
        self._used: dict[bytes, int] = {}
        self._has_first = False

    def note(self, row: TokenRow, now_ns: int) -> None:
        """A token was just used."""
        self._used[row.token_hash] = now_ns
        self._has_first = self._has_first or row.last_used_at_ns is None

    def flush_first(self) -> None:
        """Write what was noted, if a token is among it that was never used before."""
        if self._has_first:
            self.flush()

    def flush(self) -> None:
        """Write what was noted."""
        self._has_first = False
        used, self._used = self._used, {}
        if not used:
            return
        with self._store.write() as writer:
            for token_hash, used_at_ns in used.items():
                writer.change(
                    TokenRow,
                    [TokenRow.last_used_at_ns.to(used_at_ns)],
                    TokenRow.token_hash.equals(token_hash),
                )


class TokenResolver:
    """Asks the store, each time, and notes each use; `proofs` judges how a token is presented."""

    def __init__(self, store: AuthorizationStore, clock: Clock, proofs: Proofs) -> None:
        self._store = store
        self._clock = clock
        self.proofs = proofs
        self.uses = TokenUses(store)

    def resolve(self, presented: PresentedToken) -> Resolved:
        """What a good token stands for.

        Raises: InvalidToken, InvalidDpopProof, UseDpopNonce, GrantRevoked, GrantExpired,
        GrantPaused, GrantInvalid.
        """
        state = self.current(presented)
        if state.refusal is not None:
            raise state.refusal
        return state.resolved

    def current(self, presented: PresentedToken) -> TokenState:
        """What a token stands for at this moment.  Raises: InvalidToken, InvalidDpopProof."""
        with self._store.read() as reader:
            return self.state(reader, presented)

    def state_of_holder(self, reader: AuthorizationReader, holder: TokenHolder) -> TokenState:
        """What a good token of a holder stands for, whoever has one."""
        row = holder.token()
        rows = once(reader.derived, row.token_hash, lambda: _rows_behind(reader, row))
        judged = _judged(rows, self._clock())
        found = resolved(self._store.subject_id, judged)
        error, message = _ERROR_OF_STANDING.get(
            judged.standing, _ERROR_OF_STANDING[lifecycle.REVOKED]
        )
        refused = judged.standing != lifecycle.ACTIVE
        return TokenState(found, error(message) if refused else None)

    def state(self, reader: AuthorizationReader, presented: PresentedToken) -> TokenState:
        """What a token stands for in one state of the store.

        Source: docs/contract/authorization-server.md 10.1, in that order.
        Raises: InvalidToken, InvalidDpopProof, UseDpopNonce.
        """
        now_ns = self._clock()
        judged = judge(reader, presented.token, now_ns)
        if judged is None:
            raise InvalidToken("The access token is not valid.")
        self.proofs.admit(presented, judged.row.jkt)
        return self._state(judged, now_ns)

    def lasting(self, token: str) -> TokenState:
        """What the token of a request that lasts stands for now; how it came was judged before.

        Raises: InvalidToken.
        """
        now_ns = self._clock()
        with self._store.read() as reader:
            judged = judge(reader, token, now_ns)
        if judged is None:
            raise InvalidToken("The access token is not valid.")
        return self._state(judged, now_ns)

    def _state(self, judged: JudgedToken, now_ns: int) -> TokenState:
        found = resolved(self._store.subject_id, judged)
        if judged.standing in _ERROR_OF_STANDING:
            error, message = _ERROR_OF_STANDING[judged.standing]
            return TokenState(found, error(message))
        if not judged.usable or judged.standing != lifecycle.ACTIVE:
            raise InvalidToken("The access token is not valid.")
        self.uses.note(judged.row, now_ns)
        return TokenState(found)


class TokenHolder(msgspec.Struct, frozen=True):
    """Whom tokens are given to: a client, for its grant or package or else as the owner."""

    client_id: str
    grant_id: str | None = None
    package_id: str | None = None

    @property
    def kind(self) -> TokenKind:
        """What its tokens are."""
        if self.package_id is not None:
            return TokenKind.PACKAGE
        return TokenKind.OWNER if self.grant_id is None else TokenKind.CLIENT

    def token(self) -> TokenRow:
        """The row of a token that would be good for ever, of itself; it is never stored."""
        held_id = self.package_id or self.grant_id or self.client_id
        return TokenRow(
            token_hash=secret_hash(f"{self.kind} {held_id}"),
            kind=self.kind,
            client_id=self.client_id,
            grant_id=None if self.package_id else self.grant_id,
            package_id=self.package_id,
            origin="",
            resource="",
            scope="",
            issued_at_ns=0,
            expires_at_ns=MAX_INTEGER,
        )


class HeldRows(msgspec.Struct, frozen=True):
    """The rows behind a token, whatever the time is.  Shapes: `family` is `None` without one."""

    row: TokenRow
    family: FamilyRow | None
    package: PackageRow | None = None
    grant_rows: tuple[GrantRow, ...] = ()
    limits: ReadingLimitsRow | None = None


def judge(reader: AuthorizationReader, token: str, now_ns: int) -> JudgedToken | None:
    """The row of a token and how everything behind it stands; `None` if there is no such row."""
    token_hash = secret_hash(token)
    rows = once(reader.derived, token_hash, lambda: _held_rows(reader, token_hash))
    return None if rows is None else _judged(rows, now_ns)


def _judged(rows: HeldRows, now_ns: int) -> JudgedToken:
    row, grant_rows, usable = rows.row, rows.grant_rows, _usable(rows, now_ns)
    members = tuple(member_grant(grant, now_ns) for grant in grant_rows)
    if row.package_id is not None:
        reason = "owner" if rows.package is None else rows.package.reason
        standing = package_standing(reason, [grant_standing(grant, now_ns) for grant in grant_rows])
        lineage = None if rows.package is None else rows.package.lineage
        return JudgedToken(row, standing, usable, members, grant_rows, rows.limits, lineage)
    if row.grant_id is None:
        return JudgedToken(row, lifecycle.ACTIVE, usable, (), ())
    if not grant_rows:
        return JudgedToken(row, lifecycle.INVALID, usable, (), ())
    standing, lineage = grant_standing(grant_rows[0], now_ns), grant_rows[0].lineage
    return JudgedToken(row, standing, usable, members, grant_rows, rows.limits, lineage)


def _held_rows(reader: AuthorizationReader, token_hash: bytes) -> HeldRows | None:
    row = reader.get(TokenRow, TokenRow.token_hash.equals(token_hash))
    return None if row is None else _rows_behind(reader, row)


def _rows_behind(reader: AuthorizationReader, row: TokenRow) -> HeldRows:
    family = None
    if row.family_id is not None:
        family = reader.get(FamilyRow, FamilyRow.family_id.equals(row.family_id))
    if row.package_id is not None:
        package = reader.get(PackageRow, PackageRow.package_id.equals(row.package_id))
        grant_rows = () if package is None else package_grant_rows(reader, package)
        return HeldRows(row, family, package, grant_rows, _limits(reader, row.package_id))
    if row.grant_id is not None:
        grant_row = reader.get(GrantRow, GrantRow.grant_id.equals(row.grant_id))
        if grant_row is not None:
            limits = _limits(reader, row.grant_id)
            return HeldRows(row, family, grant_rows=(grant_row,), limits=limits)
    return HeldRows(row, family)


def _limits(reader: AuthorizationReader, held_id: str) -> ReadingLimitsRow | None:
    return reader.get(ReadingLimitsRow, ReadingLimitsRow.held_id.equals(held_id))


def _budget(row: ReadingLimitsRow) -> ReadingBudget:
    return ReadingBudget(row.requests_per_day, row.records_per_day, row.bytes_per_day)


def resolved(subject_id: str, judged: JudgedToken) -> Resolved:
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
        connection_id=row.connection_id,
        budget=None if judged.limits is None else _budget(judged.limits),
        result_chars=None if judged.limits is None else judged.limits.result_chars,
        lineage=judged.lineage,
    )


def _usable(rows: HeldRows, now_ns: int) -> bool:
    row, family = rows.row, rows.family
    if row.revoked_at_ns is not None or row.expires_at_ns <= now_ns:
        return False
    if row.family_id is None:
        return True
    if family is None or family.revoked_at_ns is not None:
        return False
    return family.absolute_end_ns is None or now_ns < family.absolute_end_ns
