"""Refresh families: the overlap that hosts may need, and its bounds."""

from __future__ import annotations

from typing import Any

import pytest

from personal_server.errors import InvalidGrantCode
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.tokens import Issued, Refresh, Rotating
from personal_server.storage.authorization import FamilyRow, GrantRow

CLIENT = Acting("client")
SECOND = 10**9


@pytest.fixture
def first(bench: Any, make_entry: Any) -> Issued:
    code = bench.allow(bench.ask([make_entry()]))
    return bench.redeeming.redeem_code(Redemption("cli_1", code, "none", verifier="v" * 43), CLIENT)


def rotate(bench: Any, token: str | None, overlap_seconds: int = 10) -> Issued:
    rotating = Rotating(bench.store, bench.clock, bench.random, overlap_seconds)
    return rotating.rotate(Refresh("cli_1", token or "", "none"), CLIENT)


def test_with_overlap_the_preceding_token_obtains_one_more_pair(bench: Any, first: Issued) -> None:
    second = rotate(bench, first.refresh_token)
    bench.now_ns += 10 * SECOND
    third = rotate(bench, first.refresh_token)
    assert third.family_id == second.family_id == first.family_id
    with pytest.raises(InvalidGrantCode):
        rotate(bench, first.refresh_token)
    assert bench.rows(GrantRow)[0].reason == "refresh_reuse"


def test_the_overlap_is_short(bench: Any, first: Issued) -> None:
    rotate(bench, first.refresh_token)
    bench.now_ns += 11 * SECOND
    with pytest.raises(InvalidGrantCode) as caught:
        rotate(bench, first.refresh_token)
    assert caught.value.members["fresh_authorization_required"] is True
    assert bench.rows(FamilyRow)[0].reason == "refresh_reuse"


def test_only_the_immediately_preceding_token_overlaps(bench: Any, first: Issued) -> None:
    second = rotate(bench, first.refresh_token)
    rotate(bench, second.refresh_token)
    with pytest.raises(InvalidGrantCode):
        rotate(bench, first.refresh_token)


def test_without_overlap_the_second_use_ends_the_family(bench: Any, first: Issued) -> None:
    rotate(bench, first.refresh_token, 0)
    with pytest.raises(InvalidGrantCode):
        rotate(bench, first.refresh_token, 0)
    assert bench.rows(GrantRow)[0].reason == "refresh_reuse"


def test_an_access_token_never_outlives_its_grant(bench: Any, first: Issued) -> None:
    bench.now_ns = bench.rows(GrantRow)[0].expires_at_ns - 60 * SECOND
    with bench.store.write() as writer:
        writer.change(FamilyRow, [FamilyRow.idle_end_ns.to(bench.now_ns * 2)])
    issued = rotate(bench, first.refresh_token)
    assert issued.expires_in_seconds == 60
    bench.now_ns += 60 * SECOND
    with pytest.raises(InvalidGrantCode):
        rotate(bench, issued.refresh_token)
    assert bench.rows(GrantRow)[0].reason is None
