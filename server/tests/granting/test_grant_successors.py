"""A name is what the owner likes; what is handed over reaches the successor and nothing else."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import InvalidRequest
from personal_server.granting.audit import Acting
from personal_server.granting.grant_changes import MOST_NAME_CHARS
from personal_server.granting.grant_successors import hand_over, rename_access, succeeding_grant
from personal_server.granting.holdings import show_held
from personal_server.storage.authorization_rows import (
    FamilyRow,
    GrantRow,
    PackageRow,
    ReadingLimitsRow,
    SubscriptionRow,
    TokenRow,
)
from server.tests.granting.conftest import NOTES, Bench, entry

OWNER = Acting("owner")


def rename(bench: Bench, held_id: str, name: str) -> bool:
    with bench.store.write() as writer:
        return rename_access(writer, held_id, name, OWNER, bench.now_ns)


def test_an_access_is_called_as_its_owner_likes_or_as_its_app_again(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    other = memory.connect(entry(), request_id="ar_2").grant_ids[0]
    assert rename(memory, grant_id, "  My notes ")
    assert memory.events()[-1] == ("grant.renamed", "cli_1", grant_id, None)
    names = {row.grant_id: row.name for row in memory.rows(GrantRow)}
    assert names == {grant_id: "My notes", other: None}
    assert rename(memory, grant_id, " ")
    assert {row.name for row in memory.rows(GrantRow)} == {None}


def test_a_package_has_one_name_for_all_of_it(memory: Bench) -> None:
    package_id = memory.connect(entry(), entry(NOTES)).package_id
    assert package_id is not None
    assert rename(memory, package_id, "Both")
    assert memory.rows(PackageRow)[0].name == "Both"
    assert {row.name for row in memory.rows(GrantRow)} == {None}
    assert memory.events()[-1] == ("grant.renamed", "cli_1", None, package_id)


def test_what_is_not_there_has_no_name_and_a_name_has_an_end(memory: Bench) -> None:
    assert not rename(memory, "grt_none", "x")
    grant_id = memory.connect(entry()).grant_ids[0]
    assert rename(memory, grant_id, "x" * MOST_NAME_CHARS)
    with pytest.raises(InvalidRequest) as caught:
        rename(memory, grant_id, "x" * (MOST_NAME_CHARS + 1))
    assert caught.value.param == "name"
    assert memory.rows(GrantRow)[0].name == "x" * MOST_NAME_CHARS


def test_a_successor_keeps_name_hold_and_use_and_the_first_of_its_line(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    with memory.store.write() as writer:
        to = [GrantRow.name.to("Mine"), GrantRow.hold.to("owner"), GrantRow.consumed_at_ns.to(7)]
        writer.change(GrantRow, to)
        (row,) = writer.rows(GrantRow)
        next_one = succeeding_grant(writer, row, grant_id)
        assert (next_one.replaces, next_one.lineage) == (grant_id, grant_id)
        assert (next_one.name, next_one.hold, next_one.consumed_at_ns) == ("Mine", "owner", 7)
        writer.change(GrantRow, [GrantRow.lineage.to("grt_first")])
        assert succeeding_grant(writer, row, grant_id).lineage == "grt_first"
        with pytest.raises(LookupError):
            succeeding_grant(writer, row, "grt_none")


def subscription(grant_id: str, package_id: str | None) -> SubscriptionRow:
    return SubscriptionRow(
        subscription_id=f"sub_{grant_id}",
        client_id="cli_1",
        grant_id=grant_id,
        package_id=package_id,
        callback_url="https://app.example/cb",
        secret=b"s",
        seen=0,
        created_at_ns=1,
        updated_at_ns=1,
    )


@pytest.mark.parametrize("entries", [1, 2])
def test_all_that_belongs_to_an_access_moves_and_it_ends(memory: Bench, entries: int) -> None:
    kept = memory.connect(entry(), request_id="ar_2").grant_ids[0]
    issued = memory.connect(*[entry(), entry(NOTES)][:entries])
    held_id = issued.package_id or issued.grant_ids[0]
    owned = [kept, *issued.grant_ids]
    memory.insert(*(subscription(grant_id, issued.package_id) for grant_id in owned))
    memory.insert(*(ReadingLimitsRow(held_id=one) for one in (kept, held_id)))
    members = {grant_id: f"next_{grant_id}" for grant_id in issued.grant_ids}
    successor = "gpkg_next" if entries == 2 else members[held_id]
    with memory.store.write() as writer:
        replaced = show_held(writer, held_id, memory.now_ns)
        assert replaced is not None
        hand_over(writer, replaced, successor, members, 99, OWNER, memory.now_ns)
    for table in (TokenRow, FamilyRow):
        held = {row.package_id or row.grant_id for row in memory.rows(table)}
        assert held == {kept, successor}
    ends = {row.package_id or row.grant_id: row.absolute_end_ns for row in memory.rows(FamilyRow)}
    assert ends[successor] == 99
    assert ends[kept] != 99
    subscriptions = {row.grant_id: row.package_id for row in memory.rows(SubscriptionRow)}
    package_id = successor if entries == 2 else None
    assert subscriptions == {
        kept: issued.package_id,
        **dict.fromkeys(members.values(), package_id),
    }
    assert {row.held_id for row in memory.rows(ReadingLimitsRow)} == {kept, successor}
    reasons = {row.grant_id: row.reason for row in memory.rows(GrantRow)}
    assert reasons == {kept: None, **dict.fromkeys(issued.grant_ids, "replaced")}
