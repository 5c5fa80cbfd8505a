"""The life of requests, codes, tokens, families, grants and packages, as tables that run.

Rule: a change of state that no table lists does not exist; `granting.transitions` makes each by one
conditional update.  A row past its end is a reading of the clock and no change of the row, except
for requests and codes.
Source: docs/contract/authorization-server.md 18.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Lifecycle(msgspec.Struct, frozen=True):
    """The states of one kind of row and every way between them.

    Shapes: `column` holds the word of the state or, if `timed`, the instant at which the first
        state was left, null until then; `ways` has every state as a key.
    """

    column: str
    ways: Mapping[str, frozenset[str]]
    timed: bool = False

    def may(self, state: str, to: str) -> bool:
        """Whether there is a way from a state to another."""
        return to in self.ways[state]

    def standing_in(self, state: str) -> dict[str, object]:
        """What a row that may still leave this state has in its column."""
        return {self.column: None if self.timed else state}

    def entering(self, state: str, now_ns: int) -> dict[str, object]:
        """What a row has in its column once it enters this state."""
        return {self.column: now_ns if self.timed else state}


REQUEST = Lifecycle(
    "status",
    {
        "pending": frozenset({"approved", "denied", "expired"}),
        "approved": frozenset({"redeemed", "expired"}),
        "denied": frozenset(),
        "expired": frozenset(),
        "redeemed": frozenset(),
    },
)
CODE = Lifecycle(
    "status",
    {
        "issued": frozenset({"redeemed", "burned", "expired"}),
        "redeemed": frozenset(),
        "burned": frozenset(),
        "expired": frozenset(),
    },
)
REFRESH_TOKEN = Lifecycle(
    "superseded_at_ns",
    {"current": frozenset({"superseded"}), "superseded": frozenset()},
    timed=True,
)
# Families, grants, packages and access tokens: ended once, for good.
REVOCABLE = Lifecycle(
    "revoked_at_ns",
    {"active": frozenset({"revoked"}), "revoked": frozenset()},
    timed=True,
)

# A grant that lives waits while it is held: by its owner's word, after an alarm, or since a
# restore.
HOLD = Lifecycle(
    "hold",
    {
        "none": frozenset({"owner", "alarm", "restored"}),
        "owner": frozenset({"none", "restored"}),
        "alarm": frozenset({"none", "restored"}),
        "restored": frozenset({"none"}),
    },
)

# An event subscription.  Source: docs/contract/resource-server.md 15.1.
SUBSCRIPTION = Lifecycle(
    "status",
    {
        "pending_verification": frozenset({"active", "disabled_failure", "disabled_revoked"}),
        "active": frozenset(
            {"disabled", "disabled_failure", "disabled_revoked", "pending_verification"}
        ),
        "disabled": frozenset({"active", "disabled_revoked", "pending_verification"}),
        "disabled_failure": frozenset({"disabled_revoked", "pending_verification"}),
        "disabled_revoked": frozenset(),
    },
)

# Why a grant was ended.  The first kind is a person's will, the second follows from a credential.
OWNER_REASONS = frozenset({"owner", "replaced", "client_blocked"})
CREDENTIAL_REASONS = frozenset(
    {"client_disconnected", "code_replay", "refresh_reuse", "not_collected", "idle", "restored"}
)

# How a grant or package stands.  Source: docs/contract/authorization-server.md 10.1.
ACTIVE = "active"
REVOKED = "grant_revoked"
EXPIRED = "grant_expired"
INVALID = "grant_invalid"
PAUSED = "grant_paused"
LIVING = frozenset({ACTIVE, PAUSED})
DISCONNECTED = "disconnected"  # ended only because its credential did
