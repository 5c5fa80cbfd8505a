"""What an import leaves behind that brought nothing, and what a report does not say."""

import os
from pathlib import Path

import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_sources.common.errors import ExportTooCostly
from personal_server.cli.import_command import FIRST_STEPS
from personal_server.collecting.imports import ImportRun
from server.tests.cli.import_machine import FixedZone, Machine

CHAT = "13/01/2024, 21:05 - Ada: hi\n13/01/2024, 21:06 - Ann: hello\n"
PAYPAL = (
    "Date,Time,TimeZone,Name,Type,Status,Currency,Gross,Fee,Net,Transaction ID\n"
    "01/02/2024,10:00:00,PST,Ann,Payment,Completed,USD,-5.00,0.00,-5.00,A1\n"
)


def accounts(machine: Machine) -> int:
    with machine.store.snapshot() as snapshot:
        return len(list(snapshot.connections()))


def test_an_import_that_fails_leaves_no_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("name,n\nbread,1\n")

    def costly(*_: object) -> None:
        raise ExportTooCostly("It takes too long.", "Import a part.")

    monkeypatch.setattr(ImportRun, "run", costly)
    machine = Machine()
    code, printed = machine.run("import", tmp_path / "a.csv")
    assert (code, printed["error"]["code"], accounts(machine)) == (65, "export_too_costly", 0)


def test_an_import_without_a_record_leaves_no_account_and_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,n\nbread,\nmilk,\n")
    machine = Machine()
    code, printed = machine.run("import", tmp_path / "a.csv", "--key", "n")
    assert (code, accounts(machine)) == (65, 0)
    assert printed["imports"][0]["connection"] is None


@pytest.mark.parametrize(
    ("content", "is_praised"), [("name,n\nbread,\n", False), ("name,n\nbread,1\n", True)]
)
def test_the_first_import_is_called_done_only_where_it_brought_a_record(
    content: str, is_praised: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(content)
    machine = Machine(zone=FixedZone(None))
    run_app(machine.app, ["import", str(tmp_path / "a.csv"), "--key", "n"])
    printed = capsys.readouterr()
    assert (FIRST_STEPS.split()[-1] in (printed.out + printed.err).split()) == is_praised


def test_an_account_that_holds_records_outlives_a_file_without_any(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name,n\nbread,1\n")
    machine = Machine()
    machine.run("import", tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("name,n\nbread,\nmilk,\n")
    code, _ = machine.run("import", tmp_path / "a.csv", "--key", "n")
    assert (code, accounts(machine), machine.count()) == (65, 1, 1)


def test_the_zone_is_told_only_where_a_time_was_read_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("day,n\n2024-01-13,1\n")
    (tmp_path / "b.csv").write_text("at,n\n2024-01-13T10:00:00Z,1\n")
    (tmp_path / "c.csv").write_text("at,n\n2024-01-13 10:00:00,1\n")
    machine = Machine()
    told: list[bool] = []
    for name in ("a.csv", "b.csv", "c.csv"):
        run_app(machine.app, ["import", str(tmp_path / name)])
        told.append("Times without a time zone" in capsys.readouterr().out)
    assert told == [False, False, True]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "at,n\n2024-01-13 10:00:00,1\n"),
        ("WhatsApp Chat with Ada.txt", CHAT),
    ],
)
def test_a_zone_that_is_given_later_corrects_what_was_read(
    name: str, content: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    machine = Machine()
    machine.run("import", tmp_path / name)
    count = machine.count()
    tallies = machine.streams(tmp_path / name, "--zone", "Asia/Tokyo")
    assert machine.count() == count
    assert any(each["updated"] for each in tallies.values())
    assert not any(each["new"] for each in tallies.values())


def test_dates_that_were_read_are_noted_and_not_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Download.CSV").write_text(PAYPAL)
    machine = Machine()
    run_app(machine.app, ["import", str(tmp_path / "Download.CSV")])
    printed = capsys.readouterr().out
    assert "noted 1 × ambiguous_dates" in printed
    assert "skipped" not in printed


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    code, printed = Machine().run("import", tmp_path / "pipe")  # who opens it waits for ever
    assert (code, printed["error"]["code"]) == (65, "export_unreadable")
