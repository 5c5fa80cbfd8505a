"""State tables: every listed edge, and no other."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from personal_server.consent import lifecycle

EDGES = {
    "REQUEST": {
        ("pending", "approved"),
        ("pending", "denied"),
        ("pending", "expired"),
        ("approved", "redeemed"),
        ("approved", "expired"),
    },
    "CODE": {("issued", "redeemed"), ("issued", "burned"), ("issued", "expired")},
    "REFRESH_TOKEN": {("current", "superseded")},
    "FAMILY": {("alive", "revoked"), ("alive", "expired")},
    "GRANT": {("active", "revoked"), ("active", "expired")},
}


@pytest.mark.parametrize("name", sorted(EDGES))
def test_a_table_has_exactly_its_edges(name: str) -> None:
    table: Mapping[str, frozenset[str]] = getattr(lifecycle, name)
    found = {(a, b) for a, b in itertools.product(table, repeat=2) if lifecycle.may(table, a, b)}
    assert found == EDGES[name]
    assert {state for targets in table.values() for state in targets} <= table.keys()


@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("expires", [None, 5, 10, 15])
@pytest.mark.parametrize(
    "reason", [None, *sorted(lifecycle.OWNER_REASONS | lifecycle.CREDENTIAL_REASONS)]
)
def test_how_a_grant_stands(reason: str | None, expires: int | None, readable: bool) -> None:
    found = lifecycle.standing(reason, expires, readable, now_ns=10)
    if reason in lifecycle.OWNER_REASONS:
        assert found == "grant_revoked"
    elif reason is not None:
        assert found == "disconnected"
    elif expires is not None and expires <= 10:
        assert found == "grant_expired"
    else:
        assert found == ("active" if readable else "grant_invalid")


STANDINGS = ("active", "grant_revoked", "grant_expired", "grant_invalid", "disconnected")


@pytest.mark.parametrize("members", [*itertools.product(STANDINGS, repeat=3)])
def test_how_a_package_stands(members: tuple[str, ...]) -> None:
    found = lifecycle.package_standing(None, members)
    if "active" in members:
        assert found == "active"
    elif "grant_revoked" in members:
        assert found == "grant_revoked"
    elif set(members) == {"grant_expired"}:
        assert found == "grant_expired"
    else:
        assert found in {"grant_invalid", "disconnected"}
    assert lifecycle.package_standing("owner", members) == "grant_revoked"
    assert lifecycle.package_standing("idle", members) == "disconnected"
