from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pdpp_kernel.errors import StorageUnavailable
from pdpp_mcp_server.commands.exits import run_app
from personal_server.domain.stored import Batch
from server.tests.cli.import_machine import Machine
from sources.tests import hostile
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.bank import BANK
from sources.tests.specimens.files import as_folder, as_zip
from sources.tests.specimens.mail import MAIL


@pytest.fixture
def three(tmp_path: Path) -> list[Path]:
    """A mailbox, nothing at all, and a statement."""
    as_folder({"Inbox": MAIL, "january.ofx": BANK}, tmp_path)
    return [tmp_path / "Inbox", tmp_path / "absent", tmp_path / "january.ofx"]


def test_a_path_that_fails_costs_no_other(machine: Machine, three: list[Path]) -> None:
    code, printed = machine.run("import", *three)
    assert code == 5
    assert [each["connector_key"] for each in printed["imports"]] == ["mail", "bank"]
    (error,) = printed["errors"]
    assert (error["path"], error["code"]) == (str(three[1]), "export_not_found")
    assert error["next_step"]


def test_a_failure_is_said_where_it_happens(
    machine: Machine, three: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(machine.app, ["import", *map(str, three)]) == 5
    printed = capsys.readouterr()
    assert "export_not_found: " in printed.err
    assert "transactions" in printed.out


def test_a_source_that_fails_costs_no_other_of_its_archive(
    machine: Machine, tmp_path: Path
) -> None:
    for account in ("Home", "Work"):
        machine.run("import", as_folder({"Inbox": MAIL}, tmp_path / "m"), "--connection", account)
    both = as_zip({"mail/Inbox": MAIL, "january.ofx": BANK}, tmp_path / "both.zip")
    code, printed = machine.run("import", both)
    assert code == 6
    assert [each["connector_key"] for each in printed["imports"]] == ["bank"]
    assert printed["errors"][0]["code"] == "ambiguous_connection"
    assert printed["errors"][0]["connector_key"] == "mail"


def test_a_source_of_no_such_name_stops_before_anything_is_read(
    machine: Machine, three: list[Path]
) -> None:
    code, printed = machine.run("import", *three, "--as", "gazette")
    assert (code, printed["error"]["code"]) == (64, "usage")
    assert "slack" in printed["error"]["next_step"]
    assert machine.count() == 0


def test_another_kind_than_named_is_refused_with_the_one_it_is(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "Inbox").write_bytes(MAIL)
    code, printed = machine.run("import", tmp_path / "Inbox", "--as", "calendar")
    assert (code, printed["error"]["code"]) == (65, "export_not_recognized")
    assert "`--as mail`" in printed["error"]["next_step"]


@pytest.mark.parametrize("guess", [("--key", "shoe"), ("--time", "name")])
def test_a_column_that_cannot_be_meant_is_refused_in_words(
    machine: Machine, tmp_path: Path, guess: tuple[str, str]
) -> None:
    table = as_folder(SPECIMENS["table"], tmp_path)
    code, printed = machine.run("import", table, *guess)
    assert (code, printed["error"]["code"]) == (64, "usage")
    assert printed["error"]["next_step"]


def test_what_is_left_is_told_by_why_it_was_left(machine: Machine, tmp_path: Path) -> None:
    files = {
        "Inbox": MAIL,
        "letter.docx": b"\x00unknown",
        "wide.txt": "Dear Sir".encode("utf-16"),
        "table.csv": "a,b\n1,2\n".encode("utf-16"),
        "deeper/inner.zip": as_zip({"Inbox": MAIL}, tmp_path / "inner.zip").read_bytes(),
        "empty.txt": b"",
    }
    _, printed = machine.run("import", as_zip(files, tmp_path / "all.zip"))
    (left,) = printed["not_read"]
    assert left["unknown"] == {"count": 1, "files": ["letter.docx"]}
    assert left["wide"]["files"] == ["wide.txt"]
    assert left["tables"]["files"] == ["table.csv"]
    assert left["archives"]["files"] == ["deeper/inner.zip"]
    assert left["empty"]["files"] == ["empty.txt"]


def test_a_damaged_file_that_nobody_knows_ends_with_the_code_of_damage(
    machine: Machine, tmp_path: Path
) -> None:
    path = as_zip({"Inbox": MAIL, "lost.json": b'{"a": 1}' * 100}, tmp_path / "all.zip")
    content = bytearray(path.read_bytes())
    begin = content.index(b"lost.json") + len("lost.json")
    content[begin : begin + 8] = b"\xff" * 8
    path.write_bytes(content)
    code, printed = machine.run("import", path)
    assert code == 65
    assert printed["not_read"][0]["unreadable"]["files"] == ["lost.json"]


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({}, "is empty"),
        ({"empty.txt": b""}, "is empty"),
        ({"a.tgz": b"\x1f\x8b", "b/c.zip": b"PK\x03\x04"}, "nested archives"),
        ({"wide.txt": "Dear Sir".encode("utf-16")}, "UTF-16"),
        ({"a.csv": b"a,b\n1,2\n", "b": b"\x00", "c": b"\x01"}, "--as table"),
        ({"a.pdf": b"%PDF-1.4"}, "PDF"),
        ({"a.json": b"[1,\n2]"}, "JSON"),
        ({"letter.txt": b"Dear Sir\nbread and salt\n"}, "--as table"),
        ({"letter.txt": b"Dear Sir"}, "pdpp sources"),  # names of columns, and no row
    ],
)
def test_what_nobody_knows_is_refused_with_what_to_do(
    machine: Machine, tmp_path: Path, files: dict[str, bytes], word: str
) -> None:
    code, printed = machine.run("import", as_zip(files, tmp_path / "export.zip"))
    assert (code, printed["error"]["code"]) == (65, "export_not_recognized")
    assert word in printed["error"]["message"] + printed["error"]["next_step"]
    assert printed["error"]["next_step"]


def test_an_archive_with_a_password_says_so(machine: Machine, tmp_path: Path) -> None:
    _, printed = machine.run("import", hostile.encrypted({"Inbox": MAIL}, tmp_path / "a.zip"))
    assert "encrypted" in printed["error"]["message"]


def test_an_interrupt_says_how_far_it_came(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Inbox").write_bytes(MAIL)
    with machine.interrupted_after(0):
        assert run_app(machine.app, ["import", str(tmp_path / "Inbox")]) == 130
    assert "0 %" in capsys.readouterr().err


def test_a_store_that_cannot_be_written_ends_the_command(
    machine: Machine, three: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(batch: Batch) -> Any:
        raise StorageUnavailable("The disk is full.", retry_after_seconds=30)

    monkeypatch.setattr(machine.store, "commit", full)
    code, printed = machine.run("import", *three)
    assert (code, printed["error"]["code"]) == (69, "storage_unavailable")
