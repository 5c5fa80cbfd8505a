"""Access and refresh tokens: minted, rotated, and the grants they stand for.

Rule: a token exists in clear in the value returned here and nowhere else; the store gets its
hash.  A refresh token comes with everything continuous and never with single use; what supersedes
it follows from it, so that an answer that was lost can be given again.
Source: docs/contract/authorization-server.md 5.4, 9, 10.1; docs/decisions.md C15, C29.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_address, ip_network

import msgspec
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import InvalidClient, InvalidGrantCode, InvalidTarget, OAuthRefusal
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.consent import lifecycle
from personal_server.consent.authorization_requests import SCOPE_OFFLINE
from personal_server.consent.credentials import (
    ACCESS_TOKEN,
    ALARM,
    FAMILY,
    REFRESH_TOKEN,
    SECRET_BYTES,
    RandomBytes,
    derived_secret,
    new_id,
    new_secret,
    secret_hash,
)
from personal_server.consent.selections import CONTINUOUS
from personal_server.consent.terms import render_details
from personal_server.consent.unusual_reading import REFRESH_REPEATED
from personal_server.granting.audit import SERVER, Acting, Subject, audit
from personal_server.granting.revocations import end_family
from personal_server.granting.transitions import transition
from personal_server.storage.authorization_rows import (
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    ReadingAlarmRow,
    RefreshTokenRow,
    TokenRow,
)
from personal_server.storage.grants import grant_standing, package_grant_rows, readable_grant
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    AuthorizationWriter,
    R,
)
from personal_server.storage.tables import ColumnCondition, StoredColumn

ACCESS_TOKEN_NS = 3_600 * NANOSECONDS
FAMILY_IDLE_NS = 90 * DAY_NANOSECONDS
REPEAT_NS = 60 * NANOSECONDS
"""How long after a rotation its answer is given again, whatever became of it."""
UNUSED_REPEAT_NS = 600 * NANOSECONDS
"""How long it is given again where nobody used it, to the network that it was given to first."""
NOTICED_REPEATS = 3
"""A family loses an answer once or twice; where it is given again more often, there may be two."""


class Entitlement(msgspec.Struct, frozen=True):
    """What tokens are minted for, bound to the key of `jkt` if there is one.

    Shapes: exactly one of grant, package, or kind `owner`.
    """

    kind: str
    client_id: str
    origin: str
    resource: str
    scope: str
    access_mode: str = CONTINUOUS
    grant_id: str | None = None
    package_id: str | None = None
    expires_at_ns: int | None = None
    auth_floor: str = "none"
    jkt: str | None = None


class Issued(Unprinted, frozen=True):
    """A token answer, with secrets in clear.  Goes to its client once, and never to a log.

    Shapes: `details` are `authorization_details` in the order of `grant_ids`.
    """

    access_token: str
    refresh_token: str | None
    expires_in_seconds: int
    expires_at_ns: int
    kind: str
    scope: str
    resource: str
    family_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None
    jkt: str | None = None
    grant_ids: tuple[str, ...] = ()
    details: tuple[dict[str, object], ...] = ()


class TokenPair(Unprinted, frozen=True):
    """An access token with its refresh token, in clear; for single use there is none."""

    access_token: str
    refresh_token: str | None = None


class Refresh(Unprinted, frozen=True):
    """A client with a refresh token; `auth_method` is how it proved itself just now, `jkt` the key
    that it proved to hold.
    """

    client_id: str
    refresh_token: str
    auth_method: str
    resource: str | None = None
    jkt: str | None = None


def mint(
    writer: AuthorizationWriter, entitled: Entitlement, random_bytes: RandomBytes, now_ns: int
) -> Issued:
    """The first tokens of an entitlement, with a family if it is continuous."""
    access_token = new_secret(ACCESS_TOKEN, random_bytes)
    if entitled.access_mode != CONTINUOUS:
        return _mint_pair(writer, entitled, TokenPair(access_token), None, 0, now_ns)
    owner = entitled.kind == "owner"
    family = FamilyRow(
        family_id=new_id(FAMILY, random_bytes),
        kind=entitled.kind,
        client_id=entitled.client_id,
        grant_id=entitled.grant_id,
        package_id=entitled.package_id,
        origin=entitled.origin,
        resource=entitled.resource,
        scope=entitled.scope,
        auth_floor=entitled.auth_floor,
        jkt=entitled.jkt,
        last_used_at_ns=now_ns,
        idle_end_ns=now_ns + FAMILY_IDLE_NS,
        absolute_end_ns=now_ns + FAMILY_IDLE_NS if owner else entitled.expires_at_ns,
    )
    writer.insert(family)
    pair = TokenPair(access_token, new_secret(REFRESH_TOKEN, random_bytes))
    return _mint_pair(writer, entitled, pair, family.family_id, 1, now_ns)


def _mint_next(
    writer: AuthorizationWriter, family: FamilyRow, pair: TokenPair, jkt: str | None, now_ns: int
) -> Issued:
    """The next pair of a family, bound to a key; it counts a generation on and starts its idle
    time again.
    """
    generation = family.generation + 1
    writer.change(
        FamilyRow,
        [
            FamilyRow.generation.to(generation),
            FamilyRow.jkt.to(jkt),
            FamilyRow.last_used_at_ns.to(now_ns),
            FamilyRow.idle_end_ns.to(now_ns + FAMILY_IDLE_NS),
        ],
        FamilyRow.family_id.equals(family.family_id),
    )
    return _mint_pair(writer, _lasting(family, jkt), pair, family.family_id, generation, now_ns)


def _lasting(family: FamilyRow, jkt: str | None) -> Entitlement:
    """What a family's tokens are minted for."""
    return Entitlement(
        kind=family.kind,
        client_id=family.client_id,
        origin=family.origin,
        resource=family.resource,
        scope=family.scope,
        grant_id=family.grant_id,
        package_id=family.package_id,
        expires_at_ns=family.absolute_end_ns,
        auth_floor=family.auth_floor,
        jkt=jkt,
    )


class Rotating:
    """Turns refresh tokens into the next pair.

    The conditional update of the presented token decides.  A superseded token that comes again gets
    the pair that superseded it for `REPEAT_NS`, and for `UNUSED_REPEAT_NS` while nobody used that
    and the same network asks: an answer may be lost, and two sessions of one host may share a
    credential.  From the third time on the owner is told.  Otherwise it ends the family, its tokens
    and the grant, whoever brought it.
    Source: docs/contract/authorization-server.md 9.2; docs/decisions.md C29.
    `note_uses` writes down which access tokens were used until now.
    """

    def __init__(
        self,
        store: AuthorizationStore,
        clock: Callable[[], int],
        random_bytes: RandomBytes,
        note_uses: Callable[[], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes
        self._note_uses = note_uses

    def rotate(self, refresh: Refresh, acting: Acting) -> Issued:
        """The next pair.  Raises: InvalidGrantCode, InvalidClient, InvalidTarget."""
        self._note_uses()
        with self._store.write() as writer:
            answer = self._rotate(writer, refresh, acting, self._clock())
        if isinstance(answer, OAuthRefusal):
            raise answer
        return answer

    def _rotate(
        self, writer: AuthorizationWriter, refresh: Refresh, acting: Acting, now_ns: int
    ) -> Issued | OAuthRefusal:
        refused = InvalidGrantCode("The refresh token is not valid. Authorize again.")
        token_hash = secret_hash(refresh.refresh_token)
        row = writer.get(RefreshTokenRow, RefreshTokenRow.token_hash.equals(token_hash))
        family = row and writer.get(FamilyRow, FamilyRow.family_id.equals(row.family_id))
        if row is None or family is None:
            return refused
        subject = Subject(family.client_id, family.grant_id, family.package_id)
        if family.client_id != refresh.client_id:
            audit(writer, "refresh.wrong_client", acting, now_ns, subject)
            return refused
        if not _has_key(writer, row, family, refresh):
            audit(writer, "refresh.wrong_key", acting, now_ns, subject)
            return refused
        if family.auth_floor != "none" and refresh.auth_method != family.auth_floor:
            return InvalidClient("This client must refresh tokens with a client assertion.")
        again, network = row.superseded_at_ns is not None, network_near(acting.address)
        salt = row.salt if again else self._random_bytes(SECRET_BYTES)
        pair = None if salt is None else _successor(refresh.refresh_token, salt)
        if pair is None or (again and not _may_repeat(writer, row, pair, network, now_ns)):
            end_family(writer, family, "refresh_reuse", acting, now_ns)
            audit(writer, "refresh.reused", acting, now_ns, subject)
            return InvalidGrantCode(
                (
                    "This refresh token was already used, so the server ended the "
                    "access. Authorize again."
                ),
                fresh_authorization_required=True,
            )
        ended = _is_over(family, now_ns)
        if ended or refresh.resource not in (None, family.resource):
            wrong = InvalidTarget("The token belongs to another resource.", param="resource")
            return refused if ended else wrong
        rows = held_rows(writer, family.grant_id, family.package_id, now_ns)
        if family.kind != "owner" and not rows:
            return refused
        if again:
            issued = _repeat(writer, family, pair, now_ns)
            self._count_repeat(writer, row, subject, now_ns)
        else:
            _supersede(writer, token_hash, salt, network, now_ns)
            issued = _mint_next(writer, family, pair, refresh.jkt, now_ns)
        writer.change(
            ClientRow,
            [ClientRow.last_used_at_ns.to(now_ns)],
            ClientRow.client_id.equals(family.client_id),
        )
        event = "refresh.repeated" if again else "refresh.rotated"
        audit(writer, event, acting, now_ns, subject, generation=row.generation + 1)
        return replace(
            issued, grant_ids=tuple(row.grant_id for row in rows), details=details_of(rows)
        )

    def _count_repeat(
        self, writer: AuthorizationWriter, row: RefreshTokenRow, subject: Subject, now_ns: int
    ) -> None:
        """Count a pair that is given again, and tell the owner from the third of its family on.

        The tokens of a family count together: who asks once after each renewal keeps pace with its
        client as well as who asks for one answer many times.
        """
        of_token = RefreshTokenRow.token_hash.equals(row.token_hash)
        writer.change(RefreshTokenRow, [RefreshTokenRow.repeats.to(row.repeats + 1)], of_token)
        held_id = subject.package_id or subject.grant_id
        if held_id is None:
            return
        told_ns = _told_of_repeats_ns(writer, held_id)
        family = RefreshTokenRow.family_id.equals(row.family_id)
        lately = RefreshTokenRow.superseded_at_ns.above(told_ns)
        repeats = sum(each.repeats for each in writer.rows(RefreshTokenRow, family, lately))
        if repeats < NOTICED_REPEATS or now_ns < told_ns + DAY_NANOSECONDS:
            return
        detail: dict[str, object] = {"repeats": repeats}
        writer.insert(
            ReadingAlarmRow(
                alarm_id=new_id(ALARM, self._random_bytes),
                held_id=held_id,
                client_id=subject.client_id,
                rule=REFRESH_REPEATED,
                at_ns=now_ns,
                detail=detail,
                paused=False,
            )
        )
        audit(writer, "reading.unusual", SERVER, now_ns, subject, rule=REFRESH_REPEATED, **detail)


def _told_of_repeats_ns(reader: AuthorizationReader, held_id: str) -> int:
    """When the owner was last told that answers of an access were given again; 0 for never."""
    of_it = ReadingAlarmRow.held_id.equals(held_id)
    alarms = reader.rows(ReadingAlarmRow, of_it, ReadingAlarmRow.rule.equals(REFRESH_REPEATED))
    return max((alarm.at_ns for alarm in alarms), default=0)


def network_near(address: str | None) -> str | None:
    """The /24 of an IPv4 address, the /64 of an IPv6 one; what is no address stands for itself."""
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return address or None
    return str(ip_network((parsed, 24 if parsed.version == 4 else 64), strict=False))


def _has_key(
    reader: AuthorizationReader, row: RefreshTokenRow, family: FamilyRow, refresh: Refresh
) -> bool:
    """Whether a refresh comes with the key that it must.

    A public client's family stays with its key; a client that proves itself otherwise may change
    keys.  Either may begin to use one, none may go back.  What was given once is given again to
    the same key only.
    Source: docs/contract/authorization-server.md 9.5; RFC 9449 5; docs/decisions.md C29.
    """
    if row.superseded_at_ns is not None and row.salt is not None:
        pair = _successor(refresh.refresh_token, row.salt)
        row_given = reader.get(TokenRow, _hashed(TokenRow.token_hash, pair.access_token))
        if row_given is not None:
            return row_given.jkt == refresh.jkt
    may_change = family.auth_floor != "none" and refresh.jkt is not None
    return family.jkt is None or family.jkt == refresh.jkt or may_change


def _is_over(family: FamilyRow, now_ns: int) -> bool:
    """An idle one ends for good with the next sweep, which waits while the clock is in doubt."""
    if family.revoked_at_ns is not None or family.idle_end_ns <= now_ns:
        return True
    return family.absolute_end_ns is not None and family.absolute_end_ns <= now_ns


def held_rows(
    reader: AuthorizationReader, grant_id: str | None, package_id: str | None, now_ns: int
) -> tuple[GrantRow, ...]:
    """The living grants behind a grant or package; a pause ends no credential."""
    if package_id is not None:
        package = reader.get(PackageRow, PackageRow.package_id.equals(package_id))
        if package is None or package.revoked_at_ns is not None:
            return ()
        rows = package_grant_rows(reader, package)
        return tuple(row for row in rows if grant_standing(row, now_ns) in lifecycle.LIVING)
    row = None if grant_id is None else reader.get(GrantRow, GrantRow.grant_id.equals(grant_id))
    if row is None or grant_standing(row, now_ns) not in lifecycle.LIVING:
        return ()
    return (row,)


def details_of(rows: Sequence[GrantRow]) -> tuple[dict[str, object], ...]:
    """Stored grants as `authorization_details`, in their order; unreadable ones are left out."""
    grants = [readable_grant(row) for row in rows]
    return tuple(render_details(grant) for grant in grants if grant is not None)


def _successor(refresh_token: str, salt: bytes) -> TokenPair:
    """The pair that supersedes a refresh token."""
    access_token = derived_secret(ACCESS_TOKEN, refresh_token, salt)
    return TokenPair(access_token, derived_secret(REFRESH_TOKEN, refresh_token, salt))


def _may_repeat(
    reader: AuthorizationReader,
    row: RefreshTokenRow,
    pair: TokenPair,
    network: str | None,
    now_ns: int,
) -> bool:
    """Whether the pair that superseded a token may be given again."""
    assert row.superseded_at_ns is not None  # noqa: S101 (what comes again was superseded)
    since_ns = now_ns - row.superseded_at_ns
    if since_ns <= REPEAT_NS:
        return True
    if since_ns > UNUSED_REPEAT_NS or row.superseded_from not in (None, network):
        return False
    next_row = reader.get(RefreshTokenRow, _hashed(RefreshTokenRow.token_hash, pair.refresh_token))
    access = reader.get(TokenRow, _hashed(TokenRow.token_hash, pair.access_token))
    if next_row is None or access is None:
        return False
    return (next_row.superseded_at_ns, access.last_used_at_ns, access.revoked_at_ns) == (None,) * 3


def _repeat(reader: AuthorizationReader, family: FamilyRow, pair: TokenPair, now_ns: int) -> Issued:
    """A pair given again: an access token outlives the minutes in which that may be."""
    access = reader.get(TokenRow, _hashed(TokenRow.token_hash, pair.access_token))
    assert access is not None  # noqa: S101 (it outlives them)
    lasting = _lasting(family, access.jkt)
    return _issued(lasting, pair, family.family_id, access.expires_at_ns, now_ns)


def _hashed(column: StoredColumn[R, bytes], secret: str | None) -> ColumnCondition[R]:
    return column.equals(secret_hash(secret or ""))


def _mint_pair(
    writer: AuthorizationWriter,
    entitled: Entitlement,
    pair: TokenPair,
    family_id: str | None,
    generation: int,
    now_ns: int,
) -> Issued:
    issued = _issued(entitled, pair, family_id, _access_end(entitled, now_ns), now_ns)
    writer.insert(
        TokenRow(
            token_hash=secret_hash(pair.access_token),
            kind=entitled.kind,
            client_id=entitled.client_id,
            grant_id=entitled.grant_id,
            package_id=entitled.package_id,
            family_id=family_id,
            origin=entitled.origin,
            resource=entitled.resource,
            scope=issued.scope,
            issued_at_ns=now_ns,
            expires_at_ns=issued.expires_at_ns,
            jkt=entitled.jkt,
        )
    )
    if pair.refresh_token is not None and family_id is not None:
        writer.insert(
            RefreshTokenRow(
                token_hash=secret_hash(pair.refresh_token),
                family_id=family_id,
                generation=generation,
            )
        )
    return issued


def _issued(
    entitled: Entitlement, pair: TokenPair, family_id: str | None, expires_at_ns: int, now_ns: int
) -> Issued:
    scope = entitled.scope
    if pair.refresh_token is None:
        scope = " ".join(word for word in scope.split() if word != SCOPE_OFFLINE)
    return Issued(
        access_token=pair.access_token,
        refresh_token=pair.refresh_token,
        expires_in_seconds=(expires_at_ns - now_ns) // NANOSECONDS,
        expires_at_ns=expires_at_ns,
        kind=entitled.kind,
        scope=scope,
        resource=entitled.resource,
        family_id=family_id,
        grant_id=entitled.grant_id,
        package_id=entitled.package_id,
        jkt=entitled.jkt,
    )


def _access_end(entitled: Entitlement, now_ns: int) -> int:
    end = entitled.expires_at_ns
    if entitled.access_mode != CONTINUOUS:
        longest = now_ns + DAY_NANOSECONDS
    else:
        longest = now_ns + ACCESS_TOKEN_NS
    return longest if end is None else min(longest, end)


def _supersede(
    writer: AuthorizationWriter,
    token_hash: bytes,
    salt: bytes | None,
    network: str | None,
    now_ns: int,
) -> None:
    transition(
        writer,
        RefreshTokenRow,
        "current",
        "superseded",
        now_ns,
        RefreshTokenRow.token_hash.equals(token_hash),
        columns=[RefreshTokenRow.salt.to(salt), RefreshTokenRow.superseded_from.to(network)],
    )
