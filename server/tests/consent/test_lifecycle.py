"""State tables: every listed way, and no other."""

from __future__ import annotations

import itertools

import pytest

from personal_server.consent import lifecycle
from personal_server.consent.lifecycle import Lifecycle

WAYS = {
    "REQUEST": {
        ("pending", "approved"),
        ("pending", "denied"),
        ("pending", "expired"),
        ("approved", "redeemed"),
        ("approved", "expired"),
    },
    "CODE": {("issued", "redeemed"), ("issued", "burned"), ("issued", "expired")},
    "REFRESH_TOKEN": {("current", "superseded")},
    "REVOCABLE": {("active", "revoked")},
    "HOLD": {
        ("none", "owner"),
        ("none", "alarm"),
        ("alarm", "none"),
        ("alarm", "restored"),
        ("none", "restored"),
        ("owner", "restored"),
        ("owner", "none"),
        ("restored", "none"),
    },
}


@pytest.mark.parametrize("name", sorted(WAYS))
def test_a_table_has_exactly_its_ways(name: str) -> None:
    life: Lifecycle = getattr(lifecycle, name)
    found = {(a, b) for a, b in itertools.product(life.ways, repeat=2) if life.may(a, b)}
    assert found == WAYS[name]
    assert {state for targets in life.ways.values() for state in targets} <= life.ways.keys()


@pytest.mark.parametrize("hold", ["none", "owner", "alarm", "restored"])
@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("expires", [None, 5, 10, 15])
@pytest.mark.parametrize(
    "reason", [None, *sorted(lifecycle.OWNER_REASONS | lifecycle.CREDENTIAL_REASONS)]
)
def test_how_a_grant_stands(
    reason: str | None, expires: int | None, readable: bool, hold: str
) -> None:
    found = lifecycle.standing(reason, hold, expires, readable, now_ns=10)
    if reason in lifecycle.OWNER_REASONS:
        assert found == "grant_revoked"
    elif reason is not None:
        assert found == "disconnected"
    elif expires is not None and expires <= 10:
        assert found == "grant_expired"
    else:
        living = "active" if hold == "none" else "grant_paused"
        assert found == (living if readable else "grant_invalid")


STANDINGS = (
    "active",
    "grant_paused",
    "grant_revoked",
    "grant_expired",
    "grant_invalid",
    "disconnected",
)


@pytest.mark.parametrize("members", [*itertools.product(STANDINGS, repeat=3)])
def test_how_a_package_stands(members: tuple[str, ...]) -> None:
    found = lifecycle.package_standing(None, members)
    if "active" in members:
        assert found == "active"
    elif "grant_paused" in members:
        assert found == "grant_paused"
    elif "grant_revoked" in members:
        assert found == "grant_revoked"
    elif set(members) == {"grant_expired"}:
        assert found == "grant_expired"
    else:
        assert found in {"grant_invalid", "disconnected"}
    assert lifecycle.package_standing("owner", members) == "grant_revoked"
    assert lifecycle.package_standing("idle", members) == "disconnected"
