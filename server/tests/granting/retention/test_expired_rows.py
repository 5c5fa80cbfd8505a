"""What was decided, opened, used or fetched long ago is forgotten at its instant, not before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from personal_server.granting.retention import sweep
from personal_server.storage.authorization_rows import (
    AssertionIdRow,
    AuditRow,
    AuthorizationRow,
    ClientDocumentRow,
    FamilyRow,
    GrantRow,
    OwnerLinkRow,
    OwnerSessionRow,
    RefreshTokenRow,
    RequestRow,
    SubscriptionRow,
    TokenRow,
)
from server.tests.granting.conftest import SECONDS, Bench, entry

DAY = 86_400 * SECONDS
START = 1_700_000_000 * SECONDS
WHERE: Any = {"client_id": "cli_9", "resource": "https://me.example", "scope": "pdpp:read"}


def session(**over: Any) -> OwnerSessionRow:
    times: dict[str, Any] = {
        "created_at_ns": START,
        "last_seen_at_ns": START,
        "signed_in_at_ns": START,
    }
    return OwnerSessionRow(session_hash=b"s", csrf="c", **{**times, **over})


def token(**over: Any) -> TokenRow:
    row: dict[str, Any] = {"token_hash": b"t", "kind": "client", "origin": "https://me.example"}
    row |= {"issued_at_ns": START, "expires_at_ns": START}
    return TokenRow(**{**WHERE, **row, **over})


def family(**over: Any) -> FamilyRow:
    row: dict[str, Any] = {"family_id": "fam_1", "kind": "owner", "origin": "https://me.example"}
    row |= {"last_used_at_ns": START, "idle_end_ns": START + 10_000 * DAY}
    return FamilyRow(**{**WHERE, **row, **over})


def subscription(**over: Any) -> SubscriptionRow:
    return SubscriptionRow(
        subscription_id="sub_1",
        client_id="cli_9",
        callback_url="https://app.example/cb",
        secret=b"s",
        seen=0,
        created_at_ns=START,
        updated_at_ns=START,
        **over,
    )


ROWS: list[tuple[Callable[[], AuthorizationRow], int | None]] = [
    (lambda: OwnerLinkRow(link_hash=b"l", expires_at_ns=START), 1),
    (lambda: session(ended_at_ns=START), 1),
    (session, 8),
    (lambda: AssertionIdRow(jti_hash=b"j", expires_at_ns=START), 1),
    (
        lambda: ClientDocumentRow(
            url="https://app.example",
            body=b"{}",
            digest="d",
            fetched_at_ns=START,
            fresh_until_ns=START,
        ),
        90,
    ),
    (lambda: token(last_used_at_ns=START), 30),
    (token, 90),
    (lambda: token(expires_at_ns=START + 10_000 * DAY, revoked_at_ns=START), 30),
    (
        lambda: RefreshTokenRow(
            token_hash=b"r", family_id="fam_9", generation=1, superseded_at_ns=START
        ),
        90,
    ),
    (lambda: family(revoked_at_ns=START, reason="owner"), 30),
    (lambda: family(absolute_end_ns=START), 30),
    (family, None),
    (lambda: subscription(status="disabled_revoked"), 30),
    (lambda: subscription(status="active"), None),
]


@pytest.mark.parametrize(("make", "days"), ROWS)
def test_a_row_is_forgotten_after_so_many_days(
    memory: Bench, make: Callable[[], AuthorizationRow], days: int | None
) -> None:
    row = make()
    memory.insert(row)
    sweep(memory.store, START + (days or 1_000) * DAY - 1)
    assert len(memory.rows(type(row))) == 1
    sweep(memory.store, START + (days or 1_000) * DAY)
    assert len(memory.rows(type(row))) == (days is None)


@pytest.mark.parametrize("status", ["denied", "expired", "redeemed"])
def test_a_request_that_was_decided_is_forgotten_after_a_day(memory: Bench, status: str) -> None:
    memory.ask(None, status=status, expires_at_ns=START)
    sweep(memory.store, START + DAY - 1)
    assert len(memory.rows(RequestRow)) == 1
    sweep(memory.store, START + DAY)
    assert memory.rows(RequestRow) == []


def test_a_family_that_is_forgotten_takes_its_refresh_tokens(memory: Bench) -> None:
    memory.insert(
        family(revoked_at_ns=START, reason="owner"),
        RefreshTokenRow(token_hash=b"r", family_id="fam_1", generation=1),
        RefreshTokenRow(token_hash=b"q", family_id="fam_2", generation=1),
    )
    sweep(memory.store, START + 30 * DAY)
    assert [row.family_id for row in memory.rows(RefreshTokenRow)] == ["fam_2"]


def test_a_grant_that_time_ended_is_noted_once(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    end_ns = memory.rows(GrantRow)[0].expires_at_ns
    for at_ns, count in ((end_ns - 1, 0), (end_ns, 1), (end_ns + 1, 1)):
        sweep(memory.store, at_ns)
        noted = [row for row in memory.rows(AuditRow) if row.event == "grant.expired"]
        assert [(row.actor, row.grant_id) for row in noted] == [("server", grant_id)] * count
