"""Pausing access, and what a restore leaves of it."""

from __future__ import annotations

from typing import Any

from personal_server.granting.audit import Acting
from personal_server.granting.pauses import (
    EndedAccess,
    close_after_restore,
    hold_after_alarm,
    pause_access,
    resume_access,
)
from personal_server.storage.authorization_rows import (
    AuditRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    OwnerLinkRow,
    OwnerSessionRow,
    PackageRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.grants import grant_standing
from server.tests.granting.conftest import Bench, entry

OWNER = Acting("owner")


def standings(bench: Any) -> list[str]:
    return [grant_standing(row, bench.now_ns) for row in bench.rows(GrantRow)]


def test_a_package_waits_and_goes_on_as_a_whole(bench: Any, make_entry: Any) -> None:
    bench.allow(bench.ask_device())
    package_id = bench.rows(PackageRow)[0].package_id
    count = len(bench.rows(GrantRow))
    with bench.store.write() as writer:
        assert pause_access(writer, package_id, OWNER, bench.now_ns) == count
        assert pause_access(writer, package_id, OWNER, bench.now_ns) == 0
        assert pause_access(writer, "grt_nobody", OWNER, bench.now_ns) is None
    assert set(standings(bench)) == {"grant_paused"}
    with bench.store.write() as writer:
        assert resume_access(writer, package_id, OWNER, bench.now_ns) == count
    assert set(standings(bench)) == {"active"}
    said = [row.event for row in bench.rows(AuditRow)]
    assert said.count("grant.paused") == said.count("grant.resumed") == count


def test_after_a_restore_every_credential_is_dead_and_every_living_grant_waits(
    bench: Any, make_entry: Any
) -> None:
    for name in ("req_1", "req_2"):
        bench.allow(bench.ask([make_entry()], name))
    bench.ask(None, "req_3")
    ended, waiting = [row.grant_id for row in bench.rows(GrantRow)]
    since = [EndedAccess(ended, "owner", bench.now_ns + 1), EndedAccess("grt_other", "idle", 1)]
    with bench.store.write() as writer:
        assert close_after_restore(writer, since, Acting("server"), bench.now_ns + 5) == 1
    rows = {row.grant_id: row for row in bench.rows(GrantRow)}
    assert (rows[ended].reason, rows[ended].revoked_at_ns) == ("owner", bench.now_ns + 1)
    assert (rows[waiting].hold, rows[waiting].reason) == ("restored", None)
    assert {row.status for row in bench.rows(CodeRow)} == {"expired"}
    assert {row.status for row in bench.rows(RequestRow)} == {"expired"}
    for table in (TokenRow, FamilyRow):
        assert all(row.reason == "restored" for row in bench.rows(table))


def test_after_a_restore_nobody_is_signed_in_and_no_link_opens(memory: Bench) -> None:
    memory.insert(
        OwnerLinkRow(link_hash=b"l", expires_at_ns=2**62),
        OwnerSessionRow(
            session_hash=b"s", csrf="c", created_at_ns=1, last_seen_at_ns=1, signed_in_at_ns=1
        ),
    )
    with memory.store.write() as writer:
        assert close_after_restore(writer, (), Acting("server"), memory.now_ns) == 0
    assert [row.used_at_ns for row in memory.rows(OwnerLinkRow)] == [memory.now_ns]
    assert [row.ended_at_ns for row in memory.rows(OwnerSessionRow)] == [memory.now_ns]


def test_the_trail_says_why_an_access_waits_and_that_it_goes_on(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    for move in (pause_access, resume_access, hold_after_alarm, resume_access):
        with memory.store.write() as writer:
            assert move(writer, grant_id, OWNER, memory.now_ns) == 1
    moved = [row for row in memory.rows(AuditRow) if row.event in ("grant.paused", "grant.resumed")]
    assert [(row.event, row.grant_id, row.detail) for row in moved] == [
        ("grant.paused", grant_id, {"reason": "owner"}),
        ("grant.resumed", grant_id, {}),
        ("grant.paused", grant_id, {"reason": "alarm"}),
        ("grant.resumed", grant_id, {}),
    ]
