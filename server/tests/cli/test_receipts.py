from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.exits import run_app
from server.tests.cli.import_machine import Machine
from sources.tests.specimens.bank import BANK
from sources.tests.specimens.mail import MAIL


def test_every_import_is_told_with_what_it_brought(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "Inbox").write_bytes(MAIL)
    (tmp_path / "january.ofx").write_bytes(BANK)
    machine.run("import", tmp_path / "Inbox", tmp_path / "january.ofx")
    machine.run("import", tmp_path / "Inbox")
    code, printed = machine.run("receipts")
    assert code == 0
    told = [(each["name"], each["connection"]["name"]) for each in printed["receipts"]]
    assert told == [
        ("Inbox", "E-mail"),
        ("january.ofx", "Bank statements"),
        ("Inbox", "E-mail"),
    ]
    new = [each["streams"]["messages"]["new"] for each in printed["receipts"][::2]]
    assert new == [2, 0]
    assert {len(each["sha256"]) for each in printed["receipts"]} == {64}


def test_a_person_reads_them_in_lines(
    machine: Machine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run_app(machine.app, ["receipts"]) == 0
    assert "pdpp import" in capsys.readouterr().out
    (tmp_path / "Inbox").write_bytes(MAIL)
    machine.run("import", tmp_path / "Inbox")
    assert run_app(machine.app, ["receipts"]) == 0
    printed = capsys.readouterr().out
    assert "2022-03-14" in printed
    assert max(map(len, printed.splitlines())) <= 80


FORGED: list[object] = [
    5,
    "text",
    {},
    {"name": "a", "imported_at": "never", "streams": {}},
    {"name": "a", "imported_at": "2026-01-01T00:00:00Z", "streams": []},
    {"name": "a", "imported_at": "2026-01-01T00:00:00Z", "streams": {"m": {"new": "many"}}},
    {"name": "a", "imported_at": "2026-01-01T00:00:00Z", "streams": {}, "earliest": 5},
]


@pytest.mark.parametrize("name", ["messages", "~messages"])
def test_what_a_collector_once_wrote_in_their_place_is_none(
    machine: Machine, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Inbox").write_bytes(MAIL)
    machine.run("import", tmp_path / "Inbox")
    with machine.store.snapshot() as snapshot:
        (connection,) = snapshot.connections()
    held = cast("Data", machine.store.state(connection.connection_id).state["~messages"])
    for receipts in ([*FORGED, *held["receipts"]], "none"):
        memory = held | {"receipts": receipts}
        state: Data = {"~messages": None, name: memory if name[0] == "~" else {"import": memory}}
        machine.store.put_state(connection.connection_id, state, 1)
        code, printed = machine.run("receipts")
        assert code == 0
        assert len(printed["receipts"]) == (receipts != "none")
        assert run_app(machine.app, ["receipts"]) == 0
    machine.store.put_state(connection.connection_id, {"~messages": None, "m": {"import": 5}}, 1)
    assert machine.run("receipts")[0] == 0
    capsys.readouterr()


def test_an_import_that_did_not_come_to_its_end_is_told(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    letter = "From a@b Mon Jan  1 00:00:00 2024\nFrom: a@b\nMessage-ID: <{}@b>\n\nhello\n\n"
    (tmp_path / "Inbox").write_text("".join(map(letter.format, range(2_500))))
    with machine.interrupted_after(1_500):
        machine.run("import", tmp_path / "Inbox")
    code, printed = machine.run("receipts")
    assert (code, printed["receipts"]) == (0, [])
    assert [each["name"] for each in printed["unfinished"]] == ["E-mail"]
    assert run_app(machine.app, ["receipts"]) == 0
    shown = capsys.readouterr()
    assert ("E-mail" in shown.err, shown.out) == (True, "")
    machine.run("import", tmp_path / "Inbox")
    _, printed = machine.run("receipts")
    assert (len(printed["receipts"]), printed["unfinished"]) == (1, [])
