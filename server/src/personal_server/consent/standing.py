"""Whether a grant or a package gives access now, and if not, why."""

from __future__ import annotations

from collections.abc import Iterable

from personal_server.consent.lifecycle import (
    ACTIVE,
    CREDENTIAL_REASONS,
    DISCONNECTED,
    EXPIRED,
    INVALID,
    PAUSED,
    REVOKED,
)


def standing(
    reason: str | None, hold: str, expires_at_ns: int | None, readable: bool, now_ns: int
) -> str:
    """How a grant stands now; `reason` is why it was ended, `None` if it was not.

    Source: docs/contract/authorization-server.md 10.1 and 11.1; being ended is final and outlives
    the clock.
    """
    if reason is not None:
        return DISCONNECTED if reason in CREDENTIAL_REASONS else REVOKED
    if expires_at_ns is not None and expires_at_ns <= now_ns:
        return EXPIRED
    if not readable:
        return INVALID
    return ACTIVE if hold == "none" else PAUSED


def package_standing(reason: str | None, members: Iterable[str]) -> str:
    """How a package stands, from its own end and the standings of its members.

    Source: docs/contract/authorization-server.md 11.2.
    """
    if reason is not None:
        return DISCONNECTED if reason in CREDENTIAL_REASONS else REVOKED
    standings = set(members)
    for status in (ACTIVE, PAUSED, REVOKED, DISCONNECTED, INVALID):
        if status in standings:
            return status
    return EXPIRED
