"""How grants and packages stand, in every combination."""

from __future__ import annotations

import itertools

import pytest

from personal_server.consent import lifecycle
from personal_server.consent.standing import package_standing, standing


@pytest.mark.parametrize("hold", ["none", "owner", "alarm", "restored"])
@pytest.mark.parametrize("readable", [True, False])
@pytest.mark.parametrize("expires", [None, 5, 10, 15])
@pytest.mark.parametrize(
    "reason", [None, *sorted(lifecycle.OWNER_REASONS | lifecycle.CREDENTIAL_REASONS)]
)
def test_how_a_grant_stands(
    reason: str | None, expires: int | None, readable: bool, hold: str
) -> None:
    found = standing(reason, hold, expires, readable, now_ns=10)
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
    found = package_standing(None, members)
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
    assert package_standing("owner", members) == "grant_revoked"
    assert package_standing("idle", members) == "disconnected"
