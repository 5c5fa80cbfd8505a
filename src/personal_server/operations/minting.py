"""Tokens at the moment they come into being.

Rule: a token exists in clear in the value returned here and nowhere else; the store gets its
hash.  A refresh token comes with everything continuous and never with single use.
Source: AS contract 5.4, 9, 10.1; decision C15.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from personal_server.consent.authorization_requests import SCOPE_OFFLINE
from personal_server.consent.credentials import (
    ACCESS_TOKEN,
    FAMILY,
    REFRESH_TOKEN,
    RandomBytes,
    new_id,
    new_secret,
    secret_hash,
)
from personal_server.consent.selections import CONTINUOUS
from personal_server.domain.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.storage.authorization import (
    AuthorizationWriter,
    FamilyRow,
    RefreshTokenRow,
    TokenRow,
)

ACCESS_TOKEN_NS = 3_600 * NANOSECONDS
FAMILY_IDLE_NS = 90 * DAY_NANOSECONDS


@dataclass(frozen=True, slots=True)
class Entitlement:
    """What tokens are minted for.  Shapes: exactly one of grant, package, or kind `owner`."""

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


@dataclass(frozen=True, slots=True)
class Issued:
    """A token answer, with secrets in clear.  Goes to its client once, and never to a log.

    Shapes: `details` are `authorization_details` in the order of `grant_ids`.
    """

    access_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_in_seconds: int
    expires_at_ns: int
    kind: str
    scope: str
    resource: str
    family_id: str | None = None
    grant_id: str | None = None
    package_id: str | None = None
    grant_ids: tuple[str, ...] = ()
    details: tuple[dict[str, object], ...] = ()


def mint(
    writer: AuthorizationWriter, entitled: Entitlement, random_bytes: RandomBytes, now_ns: int
) -> Issued:
    """The first tokens of an entitlement, with a family if it is continuous."""
    if entitled.access_mode != CONTINUOUS:
        return _mint_pair(writer, entitled, None, 0, random_bytes, now_ns)
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
        last_used_at_ns=now_ns,
        idle_end_ns=now_ns + FAMILY_IDLE_NS,
        absolute_end_ns=now_ns + FAMILY_IDLE_NS if owner else entitled.expires_at_ns,
    )
    writer.insert(family)
    return _mint_pair(writer, entitled, family.family_id, 1, random_bytes, now_ns)


def mint_next(
    writer: AuthorizationWriter, family: FamilyRow, random_bytes: RandomBytes, now_ns: int
) -> Issued:
    """The next pair of a family; it counts a generation on and starts its idle time again."""
    generation = family.generation + 1
    writer.change(
        FamilyRow,
        {
            "generation": generation,
            "last_used_at_ns": now_ns,
            "idle_end_ns": now_ns + FAMILY_IDLE_NS,
        },
        family_id=family.family_id,
    )
    entitled = Entitlement(
        kind=family.kind,
        client_id=family.client_id,
        origin=family.origin,
        resource=family.resource,
        scope=family.scope,
        grant_id=family.grant_id,
        package_id=family.package_id,
        expires_at_ns=family.absolute_end_ns,
        auth_floor=family.auth_floor,
    )
    return _mint_pair(writer, entitled, family.family_id, generation, random_bytes, now_ns)


def _mint_pair(
    writer: AuthorizationWriter,
    entitled: Entitlement,
    family_id: str | None,
    generation: int,
    random_bytes: RandomBytes,
    now_ns: int,
) -> Issued:
    access_token = new_secret(ACCESS_TOKEN, random_bytes)
    refresh_token = None if family_id is None else new_secret(REFRESH_TOKEN, random_bytes)
    expires_at_ns = _access_end(entitled, now_ns)
    scope = entitled.scope
    if refresh_token is None:
        scope = " ".join(word for word in scope.split() if word != SCOPE_OFFLINE)
    writer.insert(
        TokenRow(
            token_hash=secret_hash(access_token),
            kind=entitled.kind,
            client_id=entitled.client_id,
            grant_id=entitled.grant_id,
            package_id=entitled.package_id,
            family_id=family_id,
            origin=entitled.origin,
            resource=entitled.resource,
            scope=scope,
            issued_at_ns=now_ns,
            expires_at_ns=expires_at_ns,
        )
    )
    if refresh_token is not None and family_id is not None:
        writer.insert(
            RefreshTokenRow(
                token_hash=secret_hash(refresh_token), family_id=family_id, generation=generation
            )
        )
    return Issued(
        access_token=access_token,
        refresh_token=refresh_token,
        expires_in_seconds=(expires_at_ns - now_ns) // NANOSECONDS,
        expires_at_ns=expires_at_ns,
        kind=entitled.kind,
        scope=scope,
        resource=entitled.resource,
        family_id=family_id,
        grant_id=entitled.grant_id,
        package_id=entitled.package_id,
    )


def _access_end(entitled: Entitlement, now_ns: int) -> int:
    end = entitled.expires_at_ns
    if entitled.access_mode != CONTINUOUS:
        longest = now_ns + DAY_NANOSECONDS
    else:
        longest = now_ns + ACCESS_TOKEN_NS
    return longest if end is None else min(longest, end)
