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
