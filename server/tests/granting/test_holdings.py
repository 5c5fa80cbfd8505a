"""What an app holds, as its owner sees it: its end, its last use, and what it succeeds."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from personal_server.consent.narrowings import Narrowing
from personal_server.granting.audit import Acting
from personal_server.granting.holdings import (
    Holding,
    active_held,
    client_names,
    current_id,
    lineage_of,
    list_held,
    show_held,
    successor_of,
    token_binding,
    uncollected_count,
)
from personal_server.granting.local_grants import LocalChange, LocalGranting
from personal_server.granting.revocations import end_access
from personal_server.storage.authorization_rows import (
    ClientRow,
    FamilyRow,
    GrantRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import HeldQuery
from server.tests.granting.conftest import NOTES, SECONDS, Bench, entry

OWNER = Acting("owner")


def show(bench: Bench, held_id: str) -> Holding:
    with bench.store.read() as reader:
        holding = show_held(reader, held_id, bench.now_ns)
    assert holding is not None
    return holding


def narrow(bench: Bench, held_id: str, *fields: str) -> str:
    """The id of a successor that shares no other fields of entries."""
    bench.now_ns += SECONDS
    changes = LocalGranting(bench.store, lambda: bench.catalog, bench.clock, bench.random)
    change = LocalChange(held_id, Narrowing(streams={"entries": frozenset(fields)}))
    ids = changes.change(change, changes.review_change(change), OWNER)
    return ids.package_id or ids.grant_id or ""


def test_a_grant_is_shown_with_its_client_and_end(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    (row,) = memory.rows(GrantRow)
    holding = show(memory, grant_id)
    assert (holding.id, holding.kind, holding.client_id) == (grant_id, "client", "cli_1")
    assert (holding.client_name, holding.registration) == ("Notes app", "dynamic")
    assert (holding.status, holding.access_mode) == ("active", "continuous")
    assert (holding.issued_at_ns, holding.expires_at_ns) == (row.issued_at_ns, row.expires_at_ns)
    assert (holding.revoked_at_ns, holding.reason, holding.revision) == (None, None, row.revision)
    assert (holding.name, holding.replaces, holding.lineage) == (None, None, None)
    assert holding.place.at_ns == row.issued_at_ns
    assert holding.place.id == grant_id
    (view,) = holding.grants
    assert (view.grant_id, view.connector_key, view.status) == (grant_id, "journal", "active")
    assert holding.living_grants == (view.grant,)


def test_a_package_is_shown_with_its_members(memory: Bench) -> None:
    issued = memory.connect(entry(), entry(NOTES))
    assert issued.package_id is not None
    holding = show(memory, issued.package_id)
    assert (holding.kind, holding.id) == ("mcp_package", issued.package_id)
    assert [view.grant_id for view in holding.grants] == [*issued.grant_ids]
    assert [view.connector_key for view in holding.grants] == ["journal", "notes"]
    assert (holding.access_mode, holding.status) == ("continuous", "active")
    assert holding.expires_at_ns == memory.rows(GrantRow)[0].expires_at_ns
    with memory.store.write() as writer:
        end_access(writer, issued.grant_ids[0], "owner", OWNER, memory.now_ns)
    holding = show(memory, issued.package_id)
    assert (holding.status, len(holding.living_grants)) == ("active", 1)
    # a member is shown alone, by its own id
    alone = show(memory, issued.grant_ids[0])
    assert (alone.kind, alone.status, alone.reason) == ("client", "revoked", "owner")
    assert alone.revoked_at_ns == memory.now_ns


def test_nothing_is_shown_of_an_unknown_id(memory: Bench) -> None:
    with memory.store.read() as reader:
        assert show_held(reader, "grt_none", memory.now_ns) is None
        assert successor_of(reader, "grt_none", memory.now_ns) is None
        assert lineage_of(reader, "grt_none", memory.now_ns) == ()
        assert current_id(reader, "grt_none", memory.now_ns) == "grt_none"


def test_what_cannot_be_read_is_shown_as_such(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    with memory.store.write() as writer:
        writer.change(GrantRow, [GrantRow.grant.to(b"{}")])
    holding = show(memory, grant_id)
    assert (holding.status, holding.grants[0].grant) == ("unreadable", None)
    assert holding.living_grants == ()


def test_an_access_waits_until_its_app_collects_it(memory: Bench) -> None:
    code = memory.allow(memory.ask([entry()]))
    memory.allow(memory.ask_device([entry()], request_id="ar_2"))
    assert code
    with memory.store.read() as reader:
        holdings = list_held(reader, HeldQuery(memory.now_ns))
        assert [holding.status for holding in holdings] == ["waiting", "waiting"]
        assert [token_binding(reader, holding) for holding in holdings] == [None, None]
        assert uncollected_count(reader) == 2
    memory.connect(entry(), request_id="ar_3")
    with memory.store.read() as reader:
        assert uncollected_count(reader) == 2
        statuses = [holding.status for holding in list_held(reader, HeldQuery(memory.now_ns))]
    assert sorted(statuses) == ["active", "waiting", "waiting"]


def test_a_single_use_that_was_used_is_collected_though_its_token_is_forgotten(
    memory: Bench,
) -> None:
    grant_id = memory.connect(entry(access_mode="single_use")).grant_ids[0]
    with memory.store.write() as writer:
        writer.delete(TokenRow)
    assert show(memory, grant_id).is_collected


def test_a_token_that_is_left_shows_that_it_was_collected(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    with memory.store.write() as writer:
        writer.delete(FamilyRow)
    assert show(memory, grant_id).is_collected


def test_the_last_use_is_that_of_a_token_or_a_renewal(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    assert show(memory, grant_id).last_used_at_ns is None
    for used, renewed, last in ((7, None, 7), (7, 9, 9), (12, 9, 12)):
        with memory.store.write() as writer:
            writer.change(TokenRow, [TokenRow.last_used_at_ns.to(used)])
            if renewed is not None:
                to = [FamilyRow.last_used_at_ns.to(renewed), FamilyRow.generation.to(2)]
                writer.change(FamilyRow, to)
        assert show(memory, grant_id).last_used_at_ns == last


def test_a_token_is_bound_to_a_key_or_to_nobody(memory: Bench) -> None:
    holding = show(memory, memory.connect(entry()).grant_ids[0])
    package_id = memory.connect(entry(), entry(NOTES), request_id="ar_2").package_id
    assert package_id is not None
    with memory.store.read() as reader:
        assert token_binding(reader, holding) == "bearer"
    with memory.store.write() as writer:
        writer.change(TokenRow, [TokenRow.jkt.to("key")], TokenRow.package_id.equals(package_id))
    with memory.store.read() as reader:
        assert token_binding(reader, show(memory, package_id)) == "key"
        assert token_binding(reader, holding) == "bearer"


def test_lists_are_of_the_newest_first_page_by_page(memory: Bench) -> None:
    for number in range(3):
        memory.connect(entry(), request_id=f"ar_{number}")
        memory.now_ns += SECONDS
    with memory.store.read() as reader:
        every = list_held(reader, HeldQuery(memory.now_ns))
        first = list_held(reader, HeldQuery(memory.now_ns), limit=2)
        rest = list_held(reader, HeldQuery(memory.now_ns), below=first[-1].place)
    issued = [holding.issued_at_ns for holding in every]
    assert issued == sorted(issued, reverse=True)
    assert (*first, *rest) == every


def test_a_client_holds_what_lives_paused_or_not(memory: Bench) -> None:
    paused, ended = (memory.connect(entry(), request_id=f"ar_{n}").grant_ids[0] for n in (1, 2))
    with memory.store.write() as writer:
        writer.change(GrantRow, [GrantRow.hold.to("owner")], GrantRow.grant_id.equals(paused))
        end_access(writer, ended, "owner", OWNER, memory.now_ns)
    with memory.store.read() as reader:
        held = active_held(reader, "cli_1", memory.now_ns)
        assert active_held(reader, "cli_2", memory.now_ns) == ()
    assert [(holding.id, holding.status) for holding in held] == [(paused, "paused")]


def test_a_client_without_a_name_or_a_row_is_called_by_its_id(memory: Bench) -> None:
    memory.client("cli_2", name="")
    with memory.store.read() as reader:
        names = client_names(reader, ["cli_1", "cli_2", "cli_gone", None, "cli_1"])
    assert names == {"cli_1": "Notes app", "cli_2": "cli_2", "cli_gone": "cli_gone"}
    grant_id = memory.connect(entry()).grant_ids[0]
    with memory.store.write() as writer:
        writer.delete(ClientRow, ClientRow.client_id.equals("cli_1"))
    holding = show(memory, grant_id)
    assert (holding.client_name, holding.registration) == ("cli_1", None)


def test_an_owner_s_name_comes_before_the_app_s(memory: Bench) -> None:
    holding = show(memory, memory.connect(entry()).grant_ids[0])
    assert holding.title == "Notes app"
    assert replace(holding, name="Mine").title == "Mine"


@pytest.mark.parametrize("entries", [1, 2])
def test_a_line_runs_from_the_first_to_the_newest(memory: Bench, entries: int) -> None:
    issued = memory.connect(*[entry(), entry(NOTES)][:entries])
    line = [issued.package_id or issued.grant_ids[0]]
    line += [narrow(memory, line[-1], "title", "body")]
    line += [narrow(memory, line[-1], "title")]
    with memory.store.read() as reader:
        for held_id in line:
            shown = lineage_of(reader, held_id, memory.now_ns)
            assert [holding.id for holding in shown] == line
            newest = successor_of(reader, held_id, memory.now_ns)
            assert newest is not None
            assert newest.id == current_id(reader, held_id, memory.now_ns) == line[-1]


def test_the_newest_token_says_what_an_access_is_bound_to(memory: Bench) -> None:
    holding = show(memory, memory.connect(entry()).grant_ids[0])
    [first] = memory.rows(TokenRow)
    for number, jkt in ((-1, "key"), (1, "key"), (2, None)):
        at_ns = first.issued_at_ns + number
        memory.insert(
            dataclasses.replace(
                first, token_hash=bytes([number + 9]) * 32, issued_at_ns=at_ns, jkt=jkt
            )
        )
        with memory.store.read() as reader:
            assert token_binding(reader, holding) == ("key" if number == 1 else "bearer")
