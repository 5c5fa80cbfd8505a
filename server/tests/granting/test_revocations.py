"""Ending a grant, package, token or client: final, once, with all that hangs on it."""

from __future__ import annotations

import pytest

from personal_server.granting.audit import Acting
from personal_server.granting.revocations import (
    Ended,
    block_client,
    disconnect,
    end_access,
    end_client_access,
    end_family,
    end_package,
    unblock_client,
)
from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    TokenRow,
)
from server.tests.granting.conftest import NOTES, SECONDS, Bench, entry

OWNER, CLIENT = Acting("owner"), Acting("client")


def end(bench: Bench, held_id: str, reason: str = "owner") -> Ended | None:
    with bench.store.write() as writer:
        return end_access(writer, held_id, reason, OWNER, bench.now_ns)


def test_ending_what_is_not_there_ends_nothing(memory: Bench) -> None:
    before = memory.events()
    assert end(memory, "grt_none") is None
    assert memory.events() == before


def test_a_grant_ends_with_its_family_and_one_event(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    first_ns = memory.now_ns
    assert end(memory, grant_id) == Ended("grant", grant_id, first_ns, expired=False)
    (grant,), (family,) = memory.rows(GrantRow), memory.rows(FamilyRow)
    assert (grant.reason, grant.revoked_at_ns) == ("owner", first_ns)
    assert (family.reason, family.revoked_at_ns) == ("owner", first_ns)
    event = memory.rows(AuditRow)[-1]
    assert memory.events()[-1] == ("grant.revoked", "cli_1", grant_id, None)
    assert (event.detail, event.at_ns) == ({"reason": "owner"}, first_ns)
    memory.now_ns += SECONDS
    again = end(memory, grant_id, "idle")
    assert again == Ended("grant", grant_id, first_ns, expired=False)
    assert memory.rows(AuditRow)[-1] == event


@pytest.mark.parametrize("late_ns", [0, 1])
def test_what_the_clock_ended_stays_expired(memory: Bench, late_ns: int) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    memory.now_ns = memory.rows(GrantRow)[0].expires_at_ns + late_ns
    assert end(memory, grant_id) == Ended("grant", grant_id, None, expired=True)
    assert memory.rows(GrantRow)[0].revoked_at_ns is None


def test_what_its_owner_ended_before_is_not_called_expired(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    first_ns = memory.now_ns
    end(memory, grant_id)
    memory.now_ns = memory.rows(GrantRow)[0].expires_at_ns + 1
    assert end(memory, grant_id) == Ended("grant", grant_id, first_ns, expired=False)


def test_a_package_ends_with_every_member_and_one_event(memory: Bench) -> None:
    issued = memory.connect(entry(), entry(NOTES))
    assert issued.package_id is not None
    alone, other = issued.grant_ids
    first_ns = memory.now_ns
    end(memory, alone, "owner")
    memory.now_ns += SECONDS
    assert end(memory, issued.package_id) == Ended(
        "package", issued.package_id, memory.now_ns, expired=False
    )
    ends = {row.grant_id: row.revoked_at_ns for row in memory.rows(GrantRow)}
    assert ends == {alone: first_ns, other: memory.now_ns}
    assert memory.rows(FamilyRow)[0].reason == "owner"
    assert memory.events()[-1] == ("package.revoked", "cli_1", None, issued.package_id)
    assert memory.rows(AuditRow)[-1].detail == {"reason": "owner", "grant_ids": [other]}
    count, first_end = len(memory.rows(AuditRow)), memory.now_ns
    memory.now_ns += SECONDS
    again = end(memory, issued.package_id)
    assert again == Ended("package", issued.package_id, first_end, expired=False)
    assert len(memory.rows(AuditRow)) == count


def test_a_member_that_ends_alone_leaves_its_package(memory: Bench) -> None:
    issued = memory.connect(entry(), entry(NOTES))
    end(memory, issued.grant_ids[0])
    assert memory.rows(PackageRow)[0].revoked_at_ns is None
    assert memory.rows(FamilyRow)[0].revoked_at_ns is None


def test_an_unknown_package_is_none(memory: Bench) -> None:
    with memory.store.write() as writer:
        assert end_package(writer, "gpkg_none", "owner", OWNER, memory.now_ns) is None


@pytest.mark.parametrize("entries", [1, 2])
def test_a_family_ends_with_its_tokens_and_what_it_stands_for(memory: Bench, entries: int) -> None:
    issued = memory.connect(*[entry(), entry(NOTES)][:entries])
    (family,) = memory.rows(FamilyRow)
    with memory.store.write() as writer:
        end_family(writer, family, "refresh_reuse", CLIENT, memory.now_ns)
    tables = (FamilyRow, TokenRow, GrantRow, PackageRow)
    rows = [row for table in tables for row in memory.rows(table)]
    assert len(rows) == 2 + entries + (entries == 2)
    assert {row.reason for row in rows} == {"refresh_reuse"}
    event, _, grant_id, package_id = memory.events()[-1]
    assert (grant_id, package_id) == (
        None if entries == 2 else issued.grant_ids[0],
        issued.package_id,
    )
    assert event == ("package.revoked" if entries == 2 else "grant.revoked")


def test_everything_of_one_client_ends_and_nothing_of_another(memory: Bench) -> None:
    memory.client("cli_2")
    memory.connect(entry(), entry(NOTES))
    memory.connect(entry(), request_id="ar_2")
    kept = memory.connect(entry(), request_id="ar_3", client_id="cli_2")
    with memory.store.write() as writer:
        ended = end_client_access(writer, "cli_1", "client_blocked", OWNER, memory.now_ns)
    assert ended == 2
    living = [row.grant_id for row in memory.rows(GrantRow) if row.reason is None]
    assert living == [*kept.grant_ids]
    assert {row.client_id: row.reason for row in memory.rows(FamilyRow)} == {
        "cli_1": "client_blocked",
        "cli_2": None,
    }
    with memory.store.write() as writer:
        assert end_client_access(writer, "cli_1", "owner", OWNER, memory.now_ns) == 0


def test_a_blocked_client_holds_nothing_until_it_may_ask_again(memory: Bench) -> None:
    memory.client("cli_2")
    memory.connect(entry())
    first_ns = memory.now_ns
    with memory.store.write() as writer:
        assert not block_client(writer, "clr_none", OWNER, memory.now_ns)
        assert not unblock_client(writer, "clr_none", OWNER, memory.now_ns)
        assert block_client(writer, "clr_cli_1", OWNER, memory.now_ns)
        assert block_client(writer, "clr_cli_1", OWNER, memory.now_ns + 1)
    blocked = {row.client_id: row.blocked_at_ns for row in memory.rows(ClientRow)}
    assert blocked == {"cli_1": first_ns, "cli_2": None}
    assert memory.rows(GrantRow)[0].reason == "client_blocked"
    assert memory.events()[-1] == ("client.blocked", "cli_1", None, None)
    with memory.store.write() as writer:
        assert unblock_client(writer, "clr_cli_1", OWNER, memory.now_ns)
    assert [row.blocked_at_ns for row in memory.rows(ClientRow)] == [None, None]
    assert memory.rows(GrantRow)[0].reason == "client_blocked"
    assert memory.events()[-1] == ("client.unblocked", "cli_1", None, None)


def test_a_refresh_token_given_back_ends_its_access_for_its_client_alone(memory: Bench) -> None:
    issued = memory.connect(entry())
    assert issued.refresh_token is not None
    disconnect(memory.store, issued.refresh_token, "cli_2", CLIENT, memory.now_ns)
    assert memory.rows(FamilyRow)[0].reason is None
    disconnect(memory.store, issued.refresh_token, "cli_1", CLIENT, memory.now_ns)
    for table in (FamilyRow, TokenRow, GrantRow):
        assert memory.rows(table)[0].reason == "client_disconnected"


def test_an_access_token_given_back_leaves_what_lasts(memory: Bench) -> None:
    issued = memory.connect(entry())
    for client_id, reason in (("cli_2", None), ("cli_1", "client_disconnected")):
        disconnect(memory.store, issued.access_token, client_id, CLIENT, memory.now_ns)
        assert memory.rows(TokenRow)[0].reason == reason
    assert memory.events()[-1] == ("token.revoked", "cli_1", issued.grant_ids[0], None)
    assert memory.rows(GrantRow)[0].reason is None
    assert memory.rows(FamilyRow)[0].reason is None
    count = len(memory.rows(AuditRow))
    disconnect(memory.store, issued.access_token, "cli_1", CLIENT, memory.now_ns)
    disconnect(memory.store, "pdpp_at_unknown", "cli_1", CLIENT, memory.now_ns)
    assert len(memory.rows(AuditRow)) == count


@pytest.mark.parametrize("entries", [1, 2])
def test_the_only_token_of_a_single_use_given_back_ends_its_access(
    memory: Bench, entries: int
) -> None:
    details = [entry(access_mode="single_use"), entry(NOTES, access_mode="single_use")][:entries]
    issued = memory.connect(*details)
    disconnect(memory.store, issued.access_token, "cli_1", CLIENT, memory.now_ns)
    table = PackageRow if entries == 2 else GrantRow
    assert memory.rows(table)[0].reason == "client_disconnected"


@pytest.mark.parametrize("entries", [1, 2])
def test_a_token_without_a_family_leaves_what_may_be_read_again(
    memory: Bench, entries: int
) -> None:
    issued = memory.connect(*[entry(), entry(NOTES)][:entries])
    with memory.store.write() as writer:
        writer.change(TokenRow, [TokenRow.family_id.to(None)])
    disconnect(memory.store, issued.access_token, "cli_1", CLIENT, memory.now_ns)
    assert memory.rows(TokenRow)[0].reason == "client_disconnected"
    assert {row.reason for row in memory.rows(GrantRow)} == {None}
