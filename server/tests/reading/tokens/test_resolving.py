"""A token is judged by its row and through its grant, in one order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdpp_kernel.errors import PersonalServerError
from personal_server.consent.credentials import secret_hash
from personal_server.domain.authority import ReadingBudget, SourceId
from personal_server.domain.grant import Grant, StreamGrant, render_grant
from personal_server.reading.tokens import TokenHolder, TokenResolver, TokenState, TokenUses
from personal_server.storage.authorization_rows import (
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    ReadingLimitsRow,
    TokenRow,
)
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.proving import bearer, unproven

NOW, HOUR = 1_000_000 * 10**9, 3_600 * 10**9
TOKEN = "pdpp_at_secret"


def grant_row(grant_id: str = "grt_1", /, **over: object) -> GrantRow:
    grant = Grant(
        grant_id=grant_id,
        issued_at="2026-11-21T21:00:00Z",
        subject_id="own_1",
        client_id="cli_1",
        source=SourceId("connector", "https://example.com/mail"),
        declaration_version="1",
        purpose_code="https://pdpp.dev/purpose/agent_context",
        access_mode="continuous",
        streams=(StreamGrant("messages", ("cin_1",), ("id",)),),
        expires_at=None,
    )
    row = GrantRow(
        grant_id=grant_id,
        grant=render_grant(grant),
        client_id="cli_1",
        connector_key="mail",
        access_mode="continuous",
        issued_at_ns=0,
        revision="rv1:sha256:x",
    )
    return replace(row, **over)  # type: ignore[arg-type]


def token_row(**over: object) -> TokenRow:
    row = TokenRow(
        token_hash=secret_hash(TOKEN),
        kind="client",
        client_id="cli_1",
        grant_id="grt_1",
        family_id="fam_1",
        origin="https://me.example",
        resource="https://me.example/mcp",
        scope="pdpp:read",
        issued_at_ns=NOW,
        expires_at_ns=NOW + HOUR,
    )
    return replace(row, **over)  # type: ignore[arg-type]


def family_row(**over: object) -> FamilyRow:
    row = FamilyRow(
        family_id="fam_1",
        kind="client",
        client_id="cli_1",
        grant_id="grt_1",
        origin="https://me.example",
        resource="https://me.example/mcp",
        scope="pdpp:read",
        last_used_at_ns=NOW,
        idle_end_ns=NOW + 90 * 24 * HOUR,
    )
    return replace(row, **over)  # type: ignore[arg-type]


def filled(*rows: object) -> MemoryAuthorizationStore:
    store = MemoryAuthorizationStore("own_1")
    with store.write() as writer:
        for row in rows:
            writer.insert(row)  # type: ignore[arg-type]
    return store


def resolver(*rows: object) -> TokenResolver:
    return TokenResolver(filled(*rows), lambda: NOW + 1, unproven())


def code_of(found: TokenResolver) -> str:
    with pytest.raises(PersonalServerError) as caught:
        found.resolve(bearer(TOKEN))
    return caught.value.code


def test_a_good_client_token_stands_for_its_one_grant() -> None:
    found = resolver(token_row(), family_row(), grant_row()).resolve(bearer(TOKEN))
    assert (found.kind, found.subject_id, found.client_id) == ("client", "own_1", "cli_1")
    assert [(m.grant_id, m.connector_key, m.status) for m in found.grants] == [
        ("grt_1", "mail", "active")
    ]
    assert found.token_reference.startswith("tok_")


def test_an_unknown_token_is_invalid() -> None:
    assert code_of(resolver()) == "invalid_token"


@pytest.mark.parametrize(
    ("grant", "code"),
    [
        ({"reason": "owner", "revoked_at_ns": NOW}, "grant_revoked"),
        ({"reason": "replaced", "revoked_at_ns": NOW}, "grant_revoked"),
        ({"reason": "client_blocked", "revoked_at_ns": NOW}, "grant_revoked"),
        ({"expires_at_ns": NOW + 1}, "grant_expired"),
        ({"grant": b"{}"}, "grant_invalid"),
        ({"reason": "client_disconnected", "revoked_at_ns": NOW}, "invalid_token"),
        ({"reason": "code_replay", "revoked_at_ns": NOW}, "invalid_token"),
        ({"reason": "refresh_reuse", "revoked_at_ns": NOW}, "invalid_token"),
        ({"reason": "not_collected", "revoked_at_ns": NOW}, "invalid_token"),
        ({"reason": "idle", "revoked_at_ns": NOW}, "invalid_token"),
    ],
)
def test_what_ended_the_grant_decides_even_when_the_token_expired(
    grant: dict[str, object], code: str
) -> None:
    expired = token_row(expires_at_ns=NOW)
    assert code_of(resolver(token_row(), family_row(), grant_row(**grant))) == code
    assert code_of(resolver(expired, family_row(), grant_row(**grant))) == code


@pytest.mark.parametrize(
    ("token", "family"),
    [
        ({"expires_at_ns": NOW + 1}, {}),
        ({"revoked_at_ns": NOW}, {}),
        ({}, {"revoked_at_ns": NOW}),
        ({}, {"absolute_end_ns": NOW + 1}),
    ],
)
def test_a_token_or_family_that_ended_under_a_live_grant_is_invalid(
    token: dict[str, object], family: dict[str, object]
) -> None:
    found = resolver(token_row(**token), family_row(**family), grant_row())
    assert code_of(found) == "invalid_token"


def package(*members: GrantRow, reason: str | None = None) -> TokenResolver:
    rows: list[object] = [
        token_row(kind="mcp_package", grant_id=None, package_id="gpkg_1"),
        family_row(grant_id=None, package_id="gpkg_1"),
        PackageRow(
            package_id="gpkg_1",
            client_id="cli_1",
            created_at_ns=0,
            reason=reason,
            revision="rv1:sha256:x",
        ),
    ]
    for position, member in enumerate(members):
        rows += [member]
        rows += [PackageMemberRow(package_id="gpkg_1", position=position, grant_id=member.grant_id)]
    return resolver(*rows)


REVOKED = {"reason": "owner", "revoked_at_ns": NOW}
EXPIRED = {"expires_at_ns": NOW}


def test_a_package_lists_its_members_with_their_status_while_one_is_active() -> None:
    found = package(
        grant_row("grt_1"), grant_row("grt_2", **REVOKED), grant_row("grt_3", **EXPIRED)
    )
    members = found.resolve(bearer(TOKEN)).grants
    assert [m.status for m in members] == ["active", "grant_revoked", "grant_expired"]


def test_a_package_ends_with_its_members() -> None:
    ended = package(grant_row("grt_1", **EXPIRED), grant_row("grt_2", **REVOKED))
    assert code_of(ended) == "grant_revoked"
    assert code_of(package(grant_row("grt_1", **EXPIRED))) == "grant_expired"
    assert code_of(package(grant_row("grt_1", grant=b"{}"))) == "grant_invalid"
    assert code_of(package(grant_row("grt_1"), reason="owner")) == "grant_revoked"
    assert code_of(package(grant_row("grt_1"), reason="refresh_reuse")) == "invalid_token"


def test_an_owner_token_stands_for_no_grant() -> None:
    found = resolver(token_row(kind="owner", grant_id=None), family_row(grant_id=None))
    assert found.resolve(bearer(TOKEN)).grants == ()


def test_the_first_use_of_a_token_is_written_before_others() -> None:
    store, now = MemoryAuthorizationStore("own_1"), iter(range(NOW, NOW + 9))
    with store.write() as writer:
        for row in (token_row(), family_row(), grant_row()):
            writer.insert(row)
    found = TokenResolver(store, lambda: next(now), unproven())
    for _ in range(3):
        found.resolve(bearer(TOKEN))
        found.uses.flush_first()
    with store.read() as reader:
        assert reader.rows(TokenRow)[0].last_used_at_ns == NOW


def test_when_a_token_was_used_is_written_apart_from_reading() -> None:
    store = MemoryAuthorizationStore("own_1")
    with store.write() as writer:
        for row in (token_row(), family_row(), grant_row()):
            writer.insert(row)
    found = TokenResolver(store, lambda: NOW + 1, unproven())
    found.resolve(bearer(TOKEN))
    with store.read() as reader:
        assert reader.rows(TokenRow)[0].last_used_at_ns is None
    found.uses.flush()
    found.uses.flush()
    with store.read() as reader:
        assert reader.rows(TokenRow)[0].last_used_at_ns == NOW + 1


def test_a_request_that_lasts_is_judged_by_the_row_as_it_is_now() -> None:
    good = resolver(token_row(), family_row(), grant_row())
    state = good.lasting(TOKEN)
    assert state.refusal is None
    assert [member.grant_id for member in state.resolved.grants] == ["grt_1"]
    ended = resolver(token_row(), family_row(), grant_row(**REVOKED)).lasting(TOKEN)
    assert ended.refusal is not None
    assert ended.refusal.code == "grant_revoked"
    for other in (resolver(), resolver(token_row(revoked_at_ns=NOW), family_row(), grant_row())):
        with pytest.raises(PersonalServerError) as caught:
            other.lasting(TOKEN)
        assert caught.value.code == "invalid_token"


def of_holder(holder: TokenHolder, *rows: object) -> TokenState:
    store = filled(*rows)
    with store.read() as reader:
        return TokenResolver(store, lambda: NOW + 1, unproven()).state_of_holder(reader, holder)


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ({}, None),
        (REVOKED, "grant_revoked"),
        (EXPIRED, "grant_expired"),
        ({"hold": "owner"}, "grant_paused"),
        ({"grant": b"{}"}, "grant_invalid"),
        ({"reason": "idle", "revoked_at_ns": NOW}, "grant_revoked"),
    ],
)
def test_a_holder_stands_for_what_a_good_token_of_its_grant_would(
    ends: dict[str, object], code: str | None
) -> None:
    state = of_holder(TokenHolder("cli_1", "grt_1"), grant_row(**ends))
    assert (state.refusal and state.refusal.code) == code
    assert state.resolved.client_id == "cli_1"
    assert [member.grant_id for member in state.resolved.grants] == ["grt_1"]


def test_a_holder_of_nothing_that_is_there_reads_nothing() -> None:
    for holder in (TokenHolder("cli_1", "grt_9"), TokenHolder("cli_1", None, "gpkg_9")):
        state = of_holder(holder, grant_row())
        assert state.refusal is not None
        assert state.resolved.grants == ()


def test_limits_of_a_grant_go_with_its_token() -> None:
    limits = ReadingLimitsRow(
        held_id="grt_1", records_per_day=5, requests_per_day=6, bytes_per_day=7, result_chars=8
    )
    found = resolver(token_row(), family_row(), grant_row(), limits).resolve(bearer(TOKEN))
    assert found.budget == ReadingBudget(6, 5, 7)
    assert found.result_chars == 8
    without = resolver(token_row(), family_row(), grant_row()).resolve(bearer(TOKEN))
    assert (without.budget, without.result_chars) == (None, None)


def test_what_a_token_is_for_goes_on_with_it() -> None:
    grant = grant_row(lineage="grt_0")
    found = resolver(token_row(), family_row(), grant).resolve(bearer(TOKEN))
    assert (found.resource, found.expires_at_ns) == ("https://me.example/mcp", NOW + HOUR)
    assert (found.package_id, found.connection_id, found.lineage) == (None, None, "grt_0")


def test_uses_are_noted_in_memory_and_a_first_one_is_written_before_the_others() -> None:
    known = token_row(last_used_at_ns=NOW)
    new = token_row(token_hash=b"n" * 32)
    store = filled(known, new)
    uses = TokenUses(store)

    def written() -> dict[bytes, int | None]:
        with store.read() as reader:
            return {row.token_hash: row.last_used_at_ns for row in reader.rows(TokenRow)}

    uses.note(known, NOW + 5)
    uses.flush_first()
    assert written() == {known.token_hash: NOW, new.token_hash: None}
    uses.note(new, NOW + 6)
    uses.flush_first()
    assert written() == {known.token_hash: NOW + 5, new.token_hash: NOW + 6}
    uses.note(known, NOW + 7)
    uses.flush_first()
    assert written()[known.token_hash] == NOW + 5
    uses.flush()
    assert written()[known.token_hash] == NOW + 7


def test_each_holder_has_a_token_of_its_own() -> None:
    holders = [
        TokenHolder("cli_1"),
        TokenHolder("cli_2"),
        TokenHolder("cli_1", "grt_1"),
        TokenHolder("cli_1", "grt_2"),
        TokenHolder("cli_1", None, "gpkg_1"),
        TokenHolder("cli_1", None, "gpkg_2"),
    ]
    made = [holder.token() for holder in holders]
    assert len({row.token_hash for row in made}) == len(holders)
    assert [holder.token() for holder in holders] == made
    # what it is given for counts, not by which client
    assert TokenHolder("cli_2", "grt_1").token().token_hash == made[2].token_hash
