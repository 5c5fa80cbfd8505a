"""The life of requests, codes, refresh tokens, families, grants and packages, as tables.

Rule: a change of state that no table lists does not exist; stores make each by one conditional
update.  Expiry by the clock is a reading of the row, not a row change, except for requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

REQUEST: Mapping[str, frozenset[str]] = {
    "pending": frozenset({"approved", "denied", "expired"}),
    "approved": frozenset({"redeemed", "expired"}),
    "denied": frozenset(),
    "expired": frozenset(),
    "redeemed": frozenset(),
}
CODE: Mapping[str, frozenset[str]] = {
    "issued": frozenset({"redeemed", "burned", "expired"}),
    "redeemed": frozenset(),
    "burned": frozenset(),
    "expired": frozenset(),
}
REFRESH_TOKEN: Mapping[str, frozenset[str]] = {
    "current": frozenset({"superseded"}),
    "superseded": frozenset(),
}
FAMILY: Mapping[str, frozenset[str]] = {
    "alive": frozenset({"revoked", "expired"}),
    "revoked": frozenset(),
    "expired": frozenset(),
}
GRANT: Mapping[str, frozenset[str]] = {
    "active": frozenset({"revoked", "expired"}),
    "revoked": frozenset(),
    "expired": frozenset(),
}

# Why a grant was ended.  The first kind is a person's will, the second follows from a credential.
OWNER_REASONS = frozenset({"owner", "replaced", "client_blocked"})
CREDENTIAL_REASONS = frozenset(
    {"client_disconnected", "code_replay", "refresh_reuse", "not_collected", "idle"}
)

# How a grant or package stands.  Source: docs/contract/authorization-server.md 10.1.
ACTIVE = "active"
REVOKED = "grant_revoked"
EXPIRED = "grant_expired"
INVALID = "grant_invalid"
DISCONNECTED = "disconnected"  # ended only because its credential did


def may(table: Mapping[str, frozenset[str]], state: str, to: str) -> bool:
    """Whether the table has this edge."""
    return to in table[state]


def standing(reason: str | None, expires_at_ns: int | None, readable: bool, now_ns: int) -> str:
    """How a grant stands now; `reason` is why it was ended, `None` if it was not.

    Source: docs/contract/authorization-server.md 10.1 and 11.1; being ended is final and outlives
    the clock.
    """
    if reason is not None:
        return DISCONNECTED if reason in CREDENTIAL_REASONS else REVOKED
    if expires_at_ns is not None and expires_at_ns <= now_ns:
        return EXPIRED
    return ACTIVE if readable else INVALID


def package_standing(reason: str | None, members: Iterable[str]) -> str:
    """How a package stands, from its own end and the standings of its members.

    Source: docs/contract/authorization-server.md 11.2.
    """
    if reason is not None:
        return DISCONNECTED if reason in CREDENTIAL_REASONS else REVOKED
    found = set(members)
    for status in (ACTIVE, REVOKED, DISCONNECTED, INVALID):
        if status in found:
            return status
    return EXPIRED
