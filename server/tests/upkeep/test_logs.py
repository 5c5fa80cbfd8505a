from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.disclosure import SERVED, AskedDetail, DisclosureEntry
from personal_server.granting.audit import SERVER, audit
from personal_server.storage.sql.care.stored_logs import SqlLogs
from personal_server.storage.sql.logs import log_chain
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sql.logs.disclosures import SqlDisclosures
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.logs import (
    ChainReport,
    parse_head,
    render_head,
    seal_logs,
    signing_key,
    verify_log,
)

OWNER = "own_1"
DAY = DAY_NANOSECONDS
NOW = 20_000 * DAY


class Machine:
    """A file with thirty lines of what was read, one a day, each day sealed."""

    def __init__(self, path: Path) -> None:
        self.database = SqliteDatabase(path)
        self.disclosures = SqlDisclosures(self.database, OWNER)
        self.logs = SqlLogs(self.database, OWNER)
        for day in range(30):
            self.disclosures.append_disclosures([entry(day)])
            self.seal(NOW + day * DAY)

    @property
    def key(self) -> Ed25519PrivateKey:
        return signing_key(self.logs, os.urandom)

    def seal(self, at_ns: int) -> None:
        seal_logs(self.logs, self.key, at_ns)

    def report(self, name: str = "disclosures", kept: str = "") -> ChainReport:
        heads = [parse_head(line) for line in kept.splitlines()]
        return verify_log(self.logs, name, self.key.public_key(), heads)

    def faulty(self, kept: str = "") -> list[int]:
        return [fault.number for fault in self.report(kept=kept).faults]

    def forge(self, sql: str) -> None:
        """What somebody with the file does."""
        with self.database.write() as session:
            session.run(sql)


def entry(day: int, **changes: object) -> DisclosureEntry:
    made = DisclosureEntry(
        disclosure_id=f"dis_{day}",
        subject_id=OWNER,
        at_ns=NOW + day * DAY,
        request_id=f"req_{day}",
        outcome=SERVED,
        token_kind="client",
        channel="mcp",
        route="GET /v1/search",
        fields=("id", "title"),
        record_count=day,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture
def machine(tmp_path: Path) -> Generator[Machine]:
    made = Machine(tmp_path / "records.sqlite3")
    yield made
    made.database.close()


def test_a_log_that_nobody_touched_is_unbroken(machine: Machine) -> None:
    report = machine.report()
    assert (report.lines, report.unlinked, report.faults) == (30, 0, ())
    assert report.head is not None
    assert report.head.number == 30


@pytest.mark.parametrize(
    ("sql", "at"),
    [
        ("UPDATE disclosures SET record_count = 0 WHERE number = 12", [12]),
        ("UPDATE disclosures SET client_id = 'another' WHERE number = 12", [12]),
        ("DELETE FROM disclosures WHERE number = 12", [13, 13]),
        ("DELETE FROM disclosures WHERE number <= 12", [13]),
        ("DELETE FROM disclosures WHERE number > 28", [29, 30]),
        ("UPDATE disclosures SET link = NULL WHERE number = 12", [12, 12, 13]),
        ("UPDATE disclosures SET number = 31 WHERE number = 12", [13, 13, 31]),
    ],
)
def test_what_was_changed_removed_or_moved_is_named(
    machine: Machine, sql: str, at: list[int]
) -> None:
    machine.forge(sql)
    assert machine.faulty() == at


def test_a_chain_made_anew_is_shown_by_a_head_kept_elsewhere(machine: Machine) -> None:
    head = machine.report().head
    assert head is not None
    kept = render_head(head)
    machine.forge("DELETE FROM disclosures")
    machine.forge("DELETE FROM log_heads")
    machine.disclosures.append_disclosures([entry(day, record_count=0) for day in range(30)])
    assert machine.faulty() == []
    assert machine.faulty(kept) == [30]


def test_a_forged_head_is_named(machine: Machine) -> None:
    machine.forge("UPDATE log_heads SET signature = zeroblob(64) WHERE number = 30")
    assert machine.faulty() == [30]


def test_forgetting_leaves_a_signed_head_where_it_cut(machine: Machine) -> None:
    machine.disclosures.forget_disclosures(NOW + 10 * DAY)
    machine.seal(NOW + 30 * DAY)
    report = machine.report()
    assert (report.lines, report.faults) == (20, ())
    assert machine.logs.heads("disclosures")[0].number == 10


def test_a_long_log_is_forgotten_in_slices_that_let_others_write(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_chain, "SLICE_LINES", 7)
    slices: list[float] = []
    monkeypatch.setattr(log_chain.time, "sleep", slices.append)
    machine.disclosures.forget_disclosures(NOW + 25 * DAY)
    machine.seal(NOW + 30 * DAY)
    assert len(slices) == 3
    assert (machine.report().lines, machine.report().faults) == (5, ())


def test_decisions_are_forgotten_behind_a_head_too(machine: Machine) -> None:
    store = SqlAuthorizationStore(machine.database, OWNER)
    with store.write() as writer:
        for day in range(4):
            audit(writer, "client.registered", SERVER, NOW + day * DAY)
    store.forget_audit(NOW + 2 * DAY)
    report = machine.report("audit_events")
    assert (report.lines, report.faults) == (2, ())


def test_a_log_that_forgot_everything_goes_on_where_it_was(machine: Machine) -> None:
    machine.disclosures.forget_disclosures(NOW + 100 * DAY)
    machine.disclosures.append_disclosures([entry(101)])
    report = machine.report()
    assert (report.lines, report.faults) == (1, ())
    assert machine.logs.tail("disclosures")[0] == 31


def test_lines_of_before_the_chain_are_counted_and_prove_nothing(machine: Machine) -> None:
    machine.forge("DELETE FROM log_heads")
    machine.forge("UPDATE disclosures SET link = NULL")
    machine.disclosures.append_disclosures([entry(31), entry(32)])
    report = machine.report()
    assert (report.lines, report.unlinked, report.faults) == (32, 30, ())


def test_a_quiet_day_gets_no_head(machine: Machine) -> None:
    heads = len(machine.logs.heads("disclosures"))
    machine.seal(NOW + 40 * DAY)
    machine.seal(NOW + 50 * DAY)
    assert len(machine.logs.heads("disclosures")) == heads


def test_decisions_are_a_chain_too(machine: Machine) -> None:
    store = SqlAuthorizationStore(machine.database, OWNER)
    for count in range(3):
        with store.write() as writer:
            audit(writer, "client.registered", SERVER, NOW, count=count)
    assert machine.report("audit_events").faults == ()
    machine.forge("UPDATE audit_events SET actor = 'owner' WHERE event_id = 2")
    assert [fault.number for fault in machine.report("audit_events").faults] == [2]


def test_what_lies_beside_a_line_may_go_but_not_change(machine: Machine) -> None:
    details = [AskedDetail(bytes([n]) * 32, f"/v1/search?q=word{n}", ("k1",)) for n in (1, 2)]
    machine.disclosures.append_disclosures([entry(40, detail=details[0])])
    machine.disclosures.append_disclosures([entry(41, detail=details[1])])
    assert machine.faulty() == []
    machine.forge("UPDATE disclosure_details SET keys = '[\"k2\"]' WHERE number = 32")
    assert machine.faulty() == [32]
    machine.disclosures.forget_details(NOW + 100 * DAY)
    assert machine.faulty() == []
    machine.forge(
        "UPDATE disclosures SET commitment ="
        " (SELECT commitment FROM disclosures WHERE number = 31) WHERE number = 32"
    )
    assert machine.faulty() == [32]
