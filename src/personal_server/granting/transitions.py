"""Changes of state: the tables of `consent.lifecycle`, carried out.

Rule: each is one conditional update from one state to another; of two who try, one is told 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from personal_server.consent import lifecycle
from personal_server.consent.lifecycle import Lifecycle
from personal_server.storage.authorization import (
    AuthorizationWriter,
    CodeRow,
    Condition,
    FamilyRow,
    GrantRow,
    PackageRow,
    RefreshTokenRow,
    RequestRow,
    Row,
    TokenRow,
)

LIFECYCLES: Mapping[type[Row], Lifecycle] = {
    RequestRow: lifecycle.REQUEST,
    CodeRow: lifecycle.CODE,
    RefreshTokenRow: lifecycle.REFRESH_TOKEN,
    FamilyRow: lifecycle.REVOCABLE,
    GrantRow: lifecycle.REVOCABLE,
    PackageRow: lifecycle.REVOCABLE,
    TokenRow: lifecycle.REVOCABLE,
}
ERASED: Mapping[str, object] = {
    "state": None,
    "redirect_uri": None,
    "code_challenge": None,
    "shown": None,
}
"""What a request forgets when it is decided or expires."""


def transition(
    writer: AuthorizationWriter,
    table: type[Row],
    state: str,
    to: str,
    now_ns: int,
    columns: Mapping[str, object] | None = None,
    **which: Condition,
) -> int:
    """Move the rows that are in `state` and meet the conditions; how many there were.

    Shapes: `columns` are set along with the state.
    """
    life = LIFECYCLES[table]
    if not life.may(state, to):
        raise AssertionError(f"There is no way from {state} to {to} in {table.table}.")
    changed = {**life.entering(to, now_ns), **(columns or {})}
    return writer.change(table, changed, **which, **life.standing_in(state))


def close_request(
    writer: AuthorizationWriter,
    to: str,
    now_ns: int,
    columns: Mapping[str, object] | None = None,
    **which: Condition,
) -> int:
    """Decide or expire pending requests, which then forget what only the browser needed."""
    forgotten = {**ERASED, **(columns or {})}
    return transition(writer, RequestRow, "pending", to, now_ns, forgotten, **which)


def revoke(
    writer: AuthorizationWriter, table: type[Row], reason: str, now_ns: int, **which: Condition
) -> int:
    """End what is active, for a reason of `consent.lifecycle`; the first end is kept."""
    if reason not in lifecycle.OWNER_REASONS | lifecycle.CREDENTIAL_REASONS:
        raise AssertionError(f"{reason} is no reason to end anything.")
    return transition(writer, table, "active", "revoked", now_ns, {"reason": reason}, **which)
