"""Every state of every row against every operation: what no table lists does not happen."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.oauth_errors import (
    AccessDenied,
    ApprovalConflict,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrantCode,
    RequestClosed,
    SlowDown,
)
from personal_server.consent import lifecycle
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.retention import sweep
from personal_server.granting.revocations import end_access
from personal_server.granting.tokens import Refresh, Rotating
from personal_server.reading.tokens import TokenUses
from personal_server.storage.authorization_rows import (
    CodeRow,
    FamilyRow,
    GrantRow,
    RefreshTokenRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import R
from personal_server.storage.tables import Assignment
from server.tests.granting.conftest import entry

OWNER, CLIENT = Acting("owner"), Acting("client")
VERIFIER = "v" * 43
REFUSALS = (
    AccessDenied,
    ApprovalConflict,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrantCode,
    RequestClosed,
    SlowDown,
)


def put(bench: Any, table: type[R], *to: Assignment[R]) -> None:
    with bench.store.write() as writer:
        assert writer.change(table, to) >= 1


def attempt(operation: Any) -> bool:
    try:
        operation()
    except REFUSALS:
        return False
    return True


@pytest.mark.parametrize("state", sorted(lifecycle.REQUEST.ways))
@pytest.mark.parametrize("to", ["approved", "denied", "redeemed", "expired"])
def test_a_request_moves_as_its_table_says_and_not_otherwise(
    bench: Any, state: str, to: str
) -> None:
    handle = bench.ask_device([entry()])
    shown = bench.granting.view(handle, OWNER)
    if state == "approved":
        bench.granting.approve(handle, shown.choices, shown.revision, OWNER)
    put(bench, RequestRow, RequestRow.status.to(state))
    asked = Redemption("cli_1", "pdpp_dc_1", "none")
    operations = {
        "approved": lambda: bench.granting.approve(handle, shown.choices, shown.revision, OWNER),
        "denied": lambda: bench.granting.deny(handle, OWNER),
        "redeemed": lambda: bench.redeeming.redeem_device_code(asked, CLIENT),
        "expired": lambda: sweep(bench.store, bench.now_ns + 3_600 * 10**9),
    }
    tokens = len(bench.rows(TokenRow))
    moved = attempt(operations[to])
    (row,) = bench.rows(RequestRow)
    allowed = lifecycle.REQUEST.may(state, to)
    assert row.status == (to if allowed else state)
    assert moved is (allowed or to == "expired")
    assert len(bench.rows(TokenRow)) == tokens + (allowed and to == "redeemed")


@pytest.mark.parametrize("state", sorted(lifecycle.CODE.ways))
@pytest.mark.parametrize("to", ["redeemed", "burned", "expired"])
def test_a_code_moves_as_its_table_says_and_not_otherwise(bench: Any, state: str, to: str) -> None:
    code = bench.allow(bench.ask([entry()]))
    put(bench, CodeRow, CodeRow.status.to(state))
    right = Redemption("cli_1", code, "none", verifier=VERIFIER)
    wrong = Redemption("cli_1", code, "none", verifier="w" * 43)
    operations = {
        "redeemed": lambda: bench.redeeming.redeem_code(right, CLIENT),
        "burned": lambda: bench.redeeming.redeem_code(wrong, CLIENT),
        "expired": lambda: sweep(bench.store, bench.now_ns + 3_600 * 10**9),
    }
    moved = attempt(operations[to])
    (row,) = bench.rows(CodeRow)
    allowed = lifecycle.CODE.may(state, to)
    assert row.status == (to if allowed else state)
    assert moved is (to == "expired" or (allowed and to == "redeemed"))
    assert len(bench.rows(TokenRow)) == (allowed and to == "redeemed")


def connected(bench: Any) -> Any:
    code = bench.allow(bench.ask([entry()]))
    return bench.redeeming.redeem_code(Redemption("cli_1", code, "none", verifier=VERIFIER), CLIENT)


def rotating(bench: Any) -> Rotating:
    return Rotating(bench.store, bench.clock, bench.random, TokenUses(bench.store).flush)


@pytest.mark.parametrize("reason", sorted(lifecycle.OWNER_REASONS | lifecycle.CREDENTIAL_REASONS))
def test_an_ended_grant_keeps_its_first_end(bench: Any, reason: str) -> None:
    issued = connected(bench)
    at_ns = bench.now_ns
    for later, why in enumerate((reason, "owner", "idle")):
        with bench.store.write() as writer:
            end_access(writer, issued.grant_ids[0], why, OWNER, at_ns + later)
    (row,) = bench.rows(GrantRow)
    assert (row.reason, row.revoked_at_ns) == (reason, at_ns)
    with pytest.raises(InvalidGrantCode):
        rotating(bench).rotate(Refresh("cli_1", issued.refresh_token, "none"), CLIENT)


def test_an_ended_family_issues_nothing_and_stays_ended(bench: Any) -> None:
    issued = connected(bench)
    put(bench, FamilyRow, FamilyRow.revoked_at_ns.to(1), FamilyRow.reason.to("client_disconnected"))
    for _ in range(2):
        with pytest.raises(InvalidGrantCode):
            rotating(bench).rotate(Refresh("cli_1", issued.refresh_token, "none"), CLIENT)
    (row,) = bench.rows(FamilyRow)
    assert (row.revoked_at_ns, row.reason) == (1, "client_disconnected")
    assert len(bench.rows(RefreshTokenRow)) == 1


def test_a_superseded_token_is_never_current_again(bench: Any) -> None:
    issued = connected(bench)
    rotating(bench).rotate(Refresh("cli_1", issued.refresh_token, "none"), CLIENT)
    first = min(bench.rows(RefreshTokenRow), key=lambda row: row.generation)
    bench.now_ns += 10**9
    rotating(bench).rotate(Refresh("cli_1", issued.refresh_token, "none"), CLIENT)
    again = min(bench.rows(RefreshTokenRow), key=lambda row: row.generation)
    assert (again.superseded_at_ns, first.superseded_at_ns is None) == (
        first.superseded_at_ns,
        False,
    )
