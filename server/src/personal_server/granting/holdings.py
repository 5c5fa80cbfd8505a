"""What clients hold: grants and packages as the owner sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from personal_server.consent import lifecycle
from personal_server.consent.standing import package_standing
from personal_server.domain.grant import Grant
from personal_server.storage.authorization_rows import (
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.grants import grant_standing, package_grant_rows, readable_grant
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    HeldQuery,
    ListPlace,
)
from personal_server.storage.tables import ColumnCondition


class HeldGrant(msgspec.Struct, frozen=True):
    """One grant and how it stands; `grant` is `None` if its stored form cannot be read."""

    grant_id: str
    grant: Grant | None
    connector_key: str
    standing: str
    revoked_at_ns: int | None
    reason: str | None

    @property
    def status(self) -> str:
        """`active`, `paused`, `revoked`, `expired` or `unreadable`, in words for people."""
        return _STATUS[self.standing]


class Holding(msgspec.Struct, frozen=True):
    """A grant or package of a client.  `kind` is `client` or `mcp_package` like its token's.

    Shapes: `name` is what its owner calls it; `replaces` the one that it succeeds; `is_collected`
        whether its client ever got a token, without which it has no access.
    Units: `*_ns` UTC nanoseconds; `expires_at_ns` `None` for no end.
    """

    id: str
    kind: str
    client_id: str
    client_name: str
    registration: str | None
    standing: str
    access_mode: str
    issued_at_ns: int
    expires_at_ns: int | None
    revoked_at_ns: int | None
    reason: str | None
    last_used_at_ns: int | None
    revision: str
    grants: tuple[HeldGrant, ...]
    is_collected: bool
    name: str | None = None
    replaces: str | None = None
    lineage: str | None = None

    @property
    def status(self) -> str:
        """`active`, `waiting`, `paused`, `revoked`, `expired` or `unreadable`, in words for people.

        What was allowed and not collected waits for its app.
        """
        is_waiting = self.standing == lifecycle.ACTIVE and not self.is_collected
        return WAITING if is_waiting else _STATUS[self.standing]

    @property
    def living_grants(self) -> tuple[Grant, ...]:
        """Its grants, but for those that ended alone or cannot be read."""
        living = [view for view in self.grants if view.standing in lifecycle.LIVING]
        return tuple(view.grant for view in living if view.grant is not None)

    @property
    def title(self) -> str:
        """What it is called: by its owner, else by its client."""
        return self.name or self.client_name

    @property
    def place(self) -> ListPlace:
        """Where it stands in the list."""
        return ListPlace(self.issued_at_ns, self.id)


COLLECTED = ("code", "device")
"""The flows whose access an app has to collect."""
WAITING = "waiting"
"""Allowed, and not collected yet."""
_STATUS = {
    lifecycle.ACTIVE: "active",
    lifecycle.REVOKED: "revoked",
    lifecycle.DISCONNECTED: "revoked",
    lifecycle.EXPIRED: "expired",
    lifecycle.PAUSED: "paused",
    lifecycle.INVALID: "unreadable",
}


def list_held(
    reader: AuthorizationReader,
    query: HeldQuery,
    limit: int | None = None,
    below: ListPlace | None = None,
) -> tuple[Holding, ...]:
    """Grants and packages, newest first, after a place; members stand in their package only."""
    holdings = (
        show_held(reader, held_id, query.now_ns) for held_id in reader.held(query, limit, below)
    )
    return tuple(holding for holding in holdings if holding is not None)


def show_held(reader: AuthorizationReader, held_id: str, now_ns: int) -> Holding | None:
    """The grant or package of that id; a member grant is shown alone."""
    package = reader.get(PackageRow, PackageRow.package_id.equals(held_id))
    if package is not None:
        return _of_package(reader, package, now_ns)
    grant = reader.get(GrantRow, GrantRow.grant_id.equals(held_id))
    return None if grant is None else _of_grant(reader, grant, now_ns)


def token_binding(reader: AuthorizationReader, holding: Holding) -> str | None:
    """What opens its newest token: `key`, that of the app alone, or `bearer`, whoever has it.

    `None` where no token was collected.
    """
    column = TokenRow.package_id if holding.kind == "mcp_package" else TokenRow.grant_id
    rows = reader.rows(
        TokenRow, column.equals(holding.id), order=TokenRow.issued_at_ns, descending=True, limit=1
    )
    return next(("bearer" if row.jkt is None else "key" for row in rows), None)


def active_held(reader: AuthorizationReader, client_id: str, now_ns: int) -> tuple[Holding, ...]:
    """What a client holds now, paused or not."""
    holdings = list_held(reader, HeldQuery(now_ns, lasts=True, client_id=client_id))
    return tuple(holding for holding in holdings if holding.standing in lifecycle.LIVING)


def _of_grant(reader: AuthorizationReader, row: GrantRow, now_ns: int) -> Holding:
    name, registration = _client(reader, row.client_id)
    return Holding(
        id=row.grant_id,
        kind="client",
        client_id=row.client_id,
        client_name=name,
        registration=registration,
        standing=grant_standing(row, now_ns),
        access_mode=row.access_mode,
        issued_at_ns=row.issued_at_ns,
        expires_at_ns=row.expires_at_ns,
        revoked_at_ns=row.revoked_at_ns,
        reason=row.reason,
        last_used_at_ns=_last_used(
            reader, TokenRow.grant_id.equals(row.grant_id), FamilyRow.grant_id.equals(row.grant_id)
        ),
        revision=row.revision,
        grants=(_held_grant(row, now_ns),),
        is_collected=_is_collected(
            reader,
            [row],
            FamilyRow.grant_id.equals(row.grant_id),
            TokenRow.grant_id.equals(row.grant_id),
        ),
        name=row.name,
        replaces=row.replaces,
        lineage=row.lineage,
    )


def _of_package(reader: AuthorizationReader, row: PackageRow, now_ns: int) -> Holding:
    name, registration = _client(reader, row.client_id)
    members = package_grant_rows(reader, row)
    standings = [grant_standing(member, now_ns) for member in members]
    return Holding(
        id=row.package_id,
        kind="mcp_package",
        client_id=row.client_id,
        client_name=name,
        registration=registration,
        standing=package_standing(row.reason, standings),
        access_mode=members[0].access_mode,
        issued_at_ns=row.created_at_ns,
        expires_at_ns=members[0].expires_at_ns,
        revoked_at_ns=row.revoked_at_ns,
        reason=row.reason,
        last_used_at_ns=_last_used(
            reader,
            TokenRow.package_id.equals(row.package_id),
            FamilyRow.package_id.equals(row.package_id),
        ),
        revision=row.revision,
        grants=tuple(_held_grant(member, now_ns) for member in members),
        is_collected=_is_collected(
            reader,
            members,
            FamilyRow.package_id.equals(row.package_id),
            TokenRow.package_id.equals(row.package_id),
        ),
        name=row.name,
        replaces=row.replaces,
        lineage=row.lineage,
    )


def _held_grant(row: GrantRow, now_ns: int) -> HeldGrant:
    return HeldGrant(
        grant_id=row.grant_id,
        grant=readable_grant(row),
        connector_key=row.connector_key,
        standing=grant_standing(row, now_ns),
        revoked_at_ns=row.revoked_at_ns,
        reason=row.reason,
    )


def client_names(reader: AuthorizationReader, client_ids: Iterable[str | None]) -> dict[str, str]:
    """What clients are called, by id."""
    return {
        client_id: _client(reader, client_id)[0]
        for client_id in set(client_ids)
        if client_id is not None
    }


def _client(reader: AuthorizationReader, client_id: str) -> tuple[str, str | None]:
    row = reader.get(ClientRow, ClientRow.client_id.equals(client_id))
    return (client_id, None) if row is None else (row.name or client_id, row.registration)


def _is_collected(
    reader: AuthorizationReader,
    grants: Sequence[GrantRow],
    of_families: ColumnCondition[FamilyRow],
    of_tokens: ColumnCondition[TokenRow],
) -> bool:
    """Whether a token was ever minted: old tokens are forgotten, a family not while it lives."""
    if any(row.consumed_at_ns is not None for row in grants):
        return True
    return bool(
        reader.rows(FamilyRow, of_families, limit=1) or reader.rows(TokenRow, of_tokens, limit=1)
    )


def uncollected_count(reader: AuthorizationReader) -> int:
    """How many of those that last were allowed, and wait for their app to collect them."""
    approved = RequestRow.status.equals("approved")
    return sum(reader.count(RequestRow, approved, RequestRow.flow.equals(f)) for f in COLLECTED)


def successor_of(reader: AuthorizationReader, held_id: str, now_ns: int) -> Holding | None:
    """The newest of those that succeed a grant or package; itself where none does."""
    line = lineage_of(reader, held_id, now_ns)
    return line[-1] if line else None


def current_id(reader: AuthorizationReader, held_id: str, now_ns: int) -> str:
    """The id that a grant or package goes on by: of the newest that succeeds it, or its own.

    Whoever ends or pauses an access by an id from before a change means the access that lives.
    """
    holding = successor_of(reader, held_id, now_ns)
    return held_id if holding is None else holding.id


def lineage_of(reader: AuthorizationReader, held_id: str, now_ns: int) -> tuple[Holding, ...]:
    """A grant or package with all that it succeeds and that succeed it, the first one first."""
    holding = show_held(reader, held_id, now_ns)
    if holding is None:
        return ()
    first = holding.lineage or holding.id
    grants = reader.rows(GrantRow, GrantRow.lineage.equals(first), order=GrantRow.issued_at_ns)
    packages = reader.rows(
        PackageRow, PackageRow.lineage.equals(first), order=PackageRow.created_at_ns
    )
    later = [row.grant_id for row in grants] + [row.package_id for row in packages]
    holdings = (show_held(reader, held_by, now_ns) for held_by in (first, *later))
    by_replaced = {later_one.replaces: later_one for later_one in holdings if later_one is not None}
    line = [by_replaced[None]] if None in by_replaced else []
    while line and (following := by_replaced.get(line[-1].id)) is not None:
        line.append(following)
    return tuple(line)


def _last_used(
    reader: AuthorizationReader,
    of_tokens: ColumnCondition[TokenRow],
    of_families: ColumnCondition[FamilyRow],
) -> int | None:
    """When a token was used last, or renewed."""
    tokens = reader.rows(
        TokenRow, of_tokens, order=TokenRow.last_used_at_ns, descending=True, limit=1
    )
    families = reader.rows(
        FamilyRow,
        of_families,
        FamilyRow.generation.above(1),
        order=FamilyRow.last_used_at_ns,
        descending=True,
        limit=1,
    )
    used = [row.last_used_at_ns for row in (*tokens, *families)]
    return max((at for at in used if at is not None), default=None)
