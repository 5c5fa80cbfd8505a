from __future__ import annotations

from pathlib import Path

import pytest

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


def test_an_import_that_did_not_come_to_its_end_is_told(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    letter = "From a@b Mon Jan  1 00:00:00 2024\nFrom: a@b\nMessage-ID: <{}@b>\n\nhello\n\n"
    (tmp_path / "Inbox").write_text("".join(map(letter.format, range(2_500))))
    with machine.interrupted_after(2_000):
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
