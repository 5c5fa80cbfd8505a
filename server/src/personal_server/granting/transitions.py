"""Changes of state: the tables of `consent.lifecycle`, carried out.

Rule: each is one conditional update from one state to another; of two who try, one is told 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from personal_server.consent import lifecycle
from personal_server.consent.lifecycle import Lifecycle
from personal_server.storage.authorization_rows import (
    AuthorizationRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    RefreshTokenRow,
    RequestRow,
    SubscriptionRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import AuthorizationWriter, R
from personal_server.storage.tables import Assignment, ColumnCondition

LIFECYCLES: Mapping[type[AuthorizationRow], Lifecycle] = {
    RequestRow: lifecycle.REQUEST,
    CodeRow: lifecycle.CODE,
    RefreshTokenRow: lifecycle.REFRESH_TOKEN,
    FamilyRow: lifecycle.REVOCABLE,
    GrantRow: lifecycle.REVOCABLE,
    PackageRow: lifecycle.REVOCABLE,
    TokenRow: lifecycle.REVOCABLE,
    SubscriptionRow: lifecycle.SUBSCRIPTION,
}
ERASED = (
    RequestRow.state.to(None),
    RequestRow.redirect_uri.to(None),
    RequestRow.code_challenge.to(None),
    RequestRow.shown.to(None),
    RequestRow.choices.to(None),
)
"""What a request forgets when it is decided or expires."""


def transition(
    writer: AuthorizationWriter,
    table: type[R],
    state: str,
    to: str,
    now_ns: int,
    *conditions: ColumnCondition[R],
    columns: Sequence[Assignment[R]] = (),
    life: Lifecycle | None = None,
) -> int:
    """Move the rows that are in `state` and meet the conditions; how many there were.

    Shapes: `columns` are set along with the state; `life` is the table of states, that of the
        end of a row where none is named.
    """
    life = life or LIFECYCLES[table]
    if not life.may(state, to):
        raise AssertionError(f"There is no way from {state} to {to} in {table.table}.")
    column = table.table.column
    entered = [column(name).to(value) for name, value in life.entering(to, now_ns).items()]
    conditions_left = [
        column(name).equals(value) for name, value in life.standing_in(state).items()
    ]
    return writer.change(table, [*entered, *columns], *conditions, *conditions_left)


def close_request(
    writer: AuthorizationWriter,
    to: str,
    now_ns: int,
    *conditions: ColumnCondition[RequestRow],
    columns: Sequence[Assignment[RequestRow]] = (),
) -> int:
    """Decide or expire pending requests, which then forget what only the browser needed."""
    forgotten = [*ERASED, *columns]
    return transition(writer, RequestRow, "pending", to, now_ns, *conditions, columns=forgotten)


def revoke(
    writer: AuthorizationWriter,
    table: type[R],
    reason: str,
    now_ns: int,
    *conditions: ColumnCondition[R],
) -> int:
    """End what is active, for a reason of `consent.lifecycle`; the first end is kept."""
    if reason not in lifecycle.OWNER_REASONS | lifecycle.CREDENTIAL_REASONS:
        raise AssertionError(f"{reason} is no reason to end anything.")
    ended = [table.table.column("reason").to(reason)]
    return transition(writer, table, "active", "revoked", now_ns, *conditions, columns=ended)
