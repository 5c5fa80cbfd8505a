"""Pausing access, and what a restore leaves of it."""

from __future__ import annotations

from typing import Any

from personal_server.granting.audit import Acting
from personal_server.granting.pauses import (
    EndedAccess,
    close_after_restore,
    pause_access,
    resume_access,
)
from personal_server.storage.authorization_rows import (
    AuditRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.grants import grant_standing

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
