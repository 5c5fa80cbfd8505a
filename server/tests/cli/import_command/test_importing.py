from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pdpp_kernel.texts import CatalogueText, parse_text
from pdpp_mcp_server.commands.exits import run_app
from personal_server.collecting import imports, ingest
from server.tests.cli.conftest import Terminal
from server.tests.cli.import_machine import Machine
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.bank import BANK
from sources.tests.specimens.files import as_folder, as_tgz, as_zip
from sources.tests.specimens.mail import MAIL

PDF_SHA256 = hashlib.sha256(b"%PDF-1.4\n").hexdigest()


OF_ANOTHER = b"""\
From zoe@example.com Mon Mar 14 06:30:00 2022
Message-ID: <z1@example.com>
Date: Mon, 14 Mar 2022 07:30:00 +0100
From: Zoe <zoe@example.com>
To: bob@example.com
Subject: hello

hi
"""


@pytest.fixture
def mbox(tmp_path: Path) -> Path:
    (tmp_path / "Inbox").write_bytes(MAIL)
    return tmp_path / "Inbox"


def test_a_mailbox_is_stored_with_its_files(machine: Machine, mbox: Path) -> None:
    streams = machine.streams(mbox, "--connection", "Home mail")
    assert streams["messages"] == {
        "read": 2,
        "rejected": 0,
        "new": 2,
        "updated": 0,
        "unchanged": 0,
    }
    with machine.store.snapshot() as snapshot:
        (connection,) = snapshot.connections()
    assert connection.display_name == "Home mail"
    kept = machine.store.open_blob(f"blob_sha256_{PDF_SHA256}")
    assert kept is not None
    assert kept.read() == b"%PDF-1.4\n"


def test_importing_again_changes_nothing(machine: Machine, mbox: Path) -> None:
    machine.streams(mbox)
    again = machine.streams(mbox)
    assert {(each["new"], each["updated"]) for each in again.values()} == {(0, 0)}
    assert machine.count() == 3


def test_a_changed_record_is_told_apart_from_a_new_one(machine: Machine, mbox: Path) -> None:
    machine.streams(mbox)
    mbox.write_bytes(MAIL.replace(b"Inbox,Wichtig", b"Archive,Wichtig"))
    assert machine.streams(mbox)["messages"] == {
        "read": 2,
        "rejected": 0,
        "new": 0,
        "updated": 1,
        "unchanged": 1,
    }


def test_an_interrupted_import_goes_on_where_it_stopped(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "BATCH_RECORDS", 10)
    message = b"From a Mon Jan  1 00:00:00 2024\nFrom: a@b\nMessage-ID: <%d>\n\ntext %d\n\n"
    (tmp_path / "Inbox").write_bytes(b"".join(message % (n, n) for n in range(100)))
    with machine.interrupted_after(55):
        code, _ = machine.run("import", tmp_path / "Inbox")
        assert code == 130
    assert 0 < machine.count() < 100
    before = machine.count()
    streams = machine.streams(tmp_path / "Inbox")
    assert machine.count() == 100
    assert streams["messages"]["read"] <= 100 - before + 10
    assert machine.streams(tmp_path / "Inbox")["messages"]["unchanged"] == 100


def test_a_part_larger_than_a_batch_is_stored_in_several(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "BATCH_RECORDS", 10)
    monkeypatch.setattr(ingest, "MAX_LINES", 10)
    event = (
        "BEGIN:VEVENT\r\nUID:%d\r\nSUMMARY:Standup\r\nDTSTART:2024010%dT090000Z\r\n"
        "RRULE:FREQ=DAILY;COUNT=40\r\nEND:VEVENT\r\n"
    )
    events = "".join(event % (n, n) for n in range(1, 6))
    (tmp_path / "a.ics").write_text(f"BEGIN:VCALENDAR\r\n{events}END:VCALENDAR\r\n")
    for stored in (25, 75, 130):
        with machine.interrupted_after(stored):
            machine.run("import", tmp_path / "a.ics")
    machine.streams(tmp_path / "a.ics")
    assert machine.count() == 5 * 41
    assert machine.streams(tmp_path / "a.ics")["agenda"]["unchanged"] == 200


def test_a_dry_run_stores_nothing(machine: Machine, mbox: Path) -> None:
    streams = machine.streams(mbox, "--dry-run")
    assert streams["messages"] == {"read": 2, "rejected": 0}
    assert machine.count() == 0


def test_one_archive_of_many_sources_fills_a_connection_for_each(
    machine: Machine, tmp_path: Path
) -> None:
    files = {"mail/Inbox": MAIL, "bank/january.ofx": BANK}
    _, printed = machine.run("import", as_zip(files, tmp_path / "all.zip"))
    assert sorted(each["connector_key"] for each in printed["imports"]) == ["bank", "mail"]


def test_two_accounts_of_one_source_need_a_name(machine: Machine, mbox: Path) -> None:
    machine.run("import", mbox, "--connection", "Home")
    machine.run("import", mbox, "--connection", "Work")
    code, printed = machine.run("import", mbox)
    assert code == 6
    assert printed["error"]["code"] == "ambiguous_connection"
    assert printed["error"]["connector_key"] == "mail"


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (None, "export_not_found"),
        (b"just some words", "export_not_recognized"),
        (b"PK\x03\x04 cut short", "export_truncated"),
    ],
)
def test_a_path_that_cannot_be_imported_is_named(
    machine: Machine, tmp_path: Path, content: bytes | None, wanted: str
) -> None:
    if content is not None:
        (tmp_path / "export").write_bytes(content)
    code, printed = machine.run("import", tmp_path / "export")
    assert printed["error"]["code"] == wanted
    assert code == (5 if content is None else 65)


def test_a_mailbox_cut_short_ends_with_its_own_code(machine: Machine, mbox: Path) -> None:
    mbox.write_bytes(MAIL + b"From - Tue Mar 15 08:00:00 2022\nFrom: a@b\nX-Spam-Sta")
    code, printed = machine.run("import", mbox)
    assert code == 65
    assert printed["imports"][0]["skipped"][0]["code"] == "truncated"
    assert machine.count() == 3


@pytest.mark.parametrize("key", sorted(SPECIMENS))
def test_every_specimen_is_accepted_whole(machine: Machine, key: str, tmp_path: Path) -> None:
    streams = machine.streams(as_folder(SPECIMENS[key], tmp_path))
    assert sum(each["rejected"] for each in streams.values()) == 0
    assert sum(each["new"] for each in streams.values()) == machine.count()


def test_the_report_for_people_says_what_was_read(
    machine: Machine, mbox: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(machine.app, ["import", str(mbox), "--connection", "Home mail"]) == 0
    printed = capsys.readouterr()
    assert "Home mail" in printed.out
    assert "messages" in printed.out


def test_sources_are_listed_with_the_way_to_each_export(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_app(machine.app, ["sources"]) == 0
    printed = capsys.readouterr().out
    assert all(key in printed for key in SPECIMENS)


def test_times_without_a_zone_are_read_in_the_one_named(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("14.01.24, 15:05 - A: x\n")
    machine.streams(tmp_path, "--zone", "Asia/Tokyo")
    with machine.store.snapshot() as snapshot:
        (connection,) = snapshot.connections()
        rows = list(snapshot.export(connection.connection_id, "messages"))
    assert [row.data["sent_at"] for row in rows] == ["2024-01-14T06:05:00Z"]
    code, printed = machine.run("import", tmp_path, "--zone", "Atlantis")
    assert (code, printed["error"]["code"]) == (64, "usage")


def test_the_zips_of_a_split_export_are_read_from_their_folder(
    machine: Machine, tmp_path: Path
) -> None:
    as_zip({"Inbox": MAIL}, tmp_path / "takeout-001.zip")
    as_zip({"january.ofx": BANK}, tmp_path / "takeout-002.zip")
    _, printed = machine.run("import", tmp_path)
    assert [each["connector_key"] for each in printed["imports"]] == ["mail", "bank"]


PARTS = "takeout-20260101T120000Z-001.zip", "takeout-20260101T120000Z-002.tgz"


@pytest.mark.parametrize("in_a_folder", [True, False])
def test_the_parts_of_one_takeout_are_one_export(
    machine: Machine, tmp_path: Path, in_a_folder: bool
) -> None:
    files = SPECIMENS["telegram"]
    (text,) = (name for name in files if name.endswith(".json"))
    as_zip({"Inbox": MAIL, text: files[text]}, tmp_path / PARTS[0])
    pictures = {name: body for name, body in files.items() if name != text}
    as_tgz({"january.ofx": BANK} | pictures, tmp_path / PARTS[1])
    named = [tmp_path] if in_a_folder else [tmp_path / each for each in reversed(PARTS)]
    whole = as_zip(files, tmp_path.parent / f"{tmp_path.name}.zip")
    (alone,) = Machine().run("import", whole)[1]["imports"]
    _, printed = machine.run("import", *named)
    reports = {each["connector_key"]: each for each in printed["imports"]}
    assert reports.keys() == {"mail", "bank", "telegram"}
    assert len(printed["imports"]) == 3
    assert reports["telegram"]["streams"] == alone["streams"]  # with the files of the other part
    assert reports["telegram"]["skipped"] == alone["skipped"]
    assert reports["mail"]["receipt"]["name"] == f"{PARTS[0]} to {PARTS[1]} (2 parts)"
    _, again = machine.run("import", *named)
    assert {t["new"] for each in again["imports"] for t in each["streams"].values()} == {0}


def test_a_part_that_was_cut_is_named_and_costs_no_other(machine: Machine, tmp_path: Path) -> None:
    as_zip({"Inbox": MAIL}, tmp_path / PARTS[0])
    cut = as_tgz({"january.ofx": BANK}, tmp_path / PARTS[1])
    cut.write_bytes(cut.read_bytes()[:-40])
    code, printed = machine.run("import", tmp_path)
    (report,) = printed["imports"]
    assert (code, report["connector_key"], report["unfinished"]) == (65, "mail", True)
    assert report["skipped"][0]["code"] == "unreadable_part"
    assert report["skipped"][0]["examples"][0]["where"] == PARTS[1]


def test_files_that_nobody_knows_are_named(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"Inbox": MAIL, "letter.docx": b"\x00unknown"}
    run_app(machine.app, ["import", str(as_folder(files, tmp_path))])
    assert "letter.docx" in capsys.readouterr().err


def rows_of(number: int, changed: str = "") -> bytes:
    rows = [f"2024-01-{n:02},Coffee {n},3.10" for n in range(1, number + 1)]
    return "\n".join(["day,what,price", *rows, *([changed] if changed else []), ""]).encode()


def test_a_row_that_was_edited_is_told_to_stay_beside_its_successor(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "shopping.csv"
    path.write_bytes(rows_of(3))
    assert "not_in_file" not in machine.streams(path)["shopping"]
    path.write_bytes(rows_of(2, "2024-01-03,Coffee 3,3.20"))
    told = machine.streams(path)["shopping"]
    assert (told["new"], told["unchanged"], told["not_in_file"], told["deleted"]) == (1, 2, 1, 0)
    assert machine.count() == 4


def test_where_the_file_is_the_whole_what_it_lacks_is_deleted(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "shopping.csv"
    path.write_bytes(rows_of(9))
    machine.run("import", path)
    path.write_bytes(rows_of(4, "2024-01-05,Coffee 5,3.20"))
    _, printed = machine.run("import", path, "--replace", "--yes")
    told = printed["imports"][0]["streams"]["shopping"]
    assert (told["new"], told["not_in_file"], told["deleted"]) == (1, 5, 5)
    assert printed["imports"][0]["receipt"]["streams"]["shopping"]["deleted"] == 5
    assert machine.count() == 5
    path.write_bytes(rows_of(9))  # and back, since deletions are as any other
    machine.run("import", path, "--replace", "--yes")
    assert machine.count() == 9


def test_a_table_that_a_database_lost_is_told_and_deleted_where_the_file_is_the_whole(
    machine: Machine, tmp_path: Path
) -> None:
    path = tmp_path / "kitchen.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE loaves(name); INSERT INTO loaves VALUES ('rye'), ('spelt');"
            "CREATE TABLE ovens(name); INSERT INTO ovens VALUES ('old'), ('new');"
        )
    machine.run("import", path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE ovens")
    told = machine.streams(path)["ovens"]
    assert (told["read"], told["not_in_file"], told["deleted"]) == (0, 2, 0)
    told = machine.streams(path, "--replace", "--yes")
    assert (told["ovens"]["deleted"], told["loaves"]["unchanged"]) == (2, 2)
    assert machine.count() == 2


def test_a_file_that_was_not_read_whole_deletes_nothing(machine: Machine, tmp_path: Path) -> None:
    path = tmp_path / "shopping.csv"
    path.write_bytes(rows_of(9))
    machine.run("import", path)
    path.write_bytes(rows_of(4, "2024-01-05,too,many,cells"))
    _, printed = machine.run("import", path, "--replace", "--yes")
    told = printed["imports"][0]["streams"]["shopping"]
    assert (told["not_in_file"], told["deleted"]) == (5, 0)
    assert machine.count() == 9


def test_what_cannot_be_replaced_is_refused(machine: Machine, tmp_path: Path) -> None:
    table = tmp_path / "shopping.csv"
    table.write_bytes(rows_of(2))
    mail = as_folder({"Inbox": MAIL}, tmp_path / "mail")
    for arguments in ([table, "--replace"], [table, "--replace", "--dry-run"]):
        code, _ = machine.run("import", *arguments)
        assert (code, machine.count()) == (64, 0)
    code, printed = machine.run("import", mail, "--replace", "--yes")
    assert (printed["error"]["code"], machine.count()) == ("usage", 0)
    assert code == 64


def test_a_file_of_another_owner_is_asked_about(machine: Machine, mbox: Path) -> None:
    machine.streams(mbox)
    second = mbox.with_name("Archive")
    second.write_bytes(OF_ANOTHER)
    refused = machine.run("import", second, "--ask")[1]["error"]
    assert refused["code"] == "ambiguous_connection"
    assert "--connection" in refused["next_step"]
    machine.streams(mbox, "--ask")
    machine.streams(second, "--ask", "--connection", "Another")
    with machine.store.snapshot() as snapshot:
        assert {c.display_name for c in snapshot.connections()} == {"E-mail", "Another"}


@pytest.mark.parametrize(
    ("answer", "accounts"),
    [
        ("y\n", {"E-mail"}),
        ("Ja\n", {"E-mail"}),
        ("E-mail\n", {"E-mail"}),
        ("Work\n", {"E-mail", "Work"}),
        ("n\nWork\n", {"E-mail", "Work"}),
    ],
)
def test_an_answer_of_yes_or_no_is_no_name_of_an_account(
    machine: Machine, mbox: Path, terminal: Terminal, answer: str, accounts: set[str]
) -> None:
    machine.streams(mbox)
    second = mbox.with_name("Archive")
    second.write_bytes(OF_ANOTHER)
    terminal.types(answer)
    assert run_app(machine.app, ["import", str(second)]) == 0
    with machine.store.snapshot() as snapshot:
        assert {c.display_name for c in snapshot.connections()} == accounts


@pytest.mark.parametrize("answer", ["n\n\n", "\n"])
def test_no_without_a_name_imports_nothing(
    machine: Machine, mbox: Path, terminal: Terminal, answer: str
) -> None:
    machine.streams(mbox)
    second = mbox.with_name("Archive")
    second.write_bytes(OF_ANOTHER)
    terminal.types(answer)
    assert run_app(machine.app, ["import", str(second)]) == 6


def test_who_asks_is_told_what_sentences_were_made_of(machine: Machine, tmp_path: Path) -> None:
    export = tmp_path / "words.txt"
    export.write_bytes(b"just some words")
    plain = machine.run("import", export)[1]["error"]
    asked = machine.run("import", export, "--ask")[1]["error"]
    assert "texts" not in plain
    assert {name: asked[name] for name in plain} == plain
    text = parse_text(asked["texts"]["message"])
    assert isinstance(text, CatalogueText)
    assert (text, text.values["file"]) == (plain["message"], "words.txt")
    assert isinstance(text.values["sentence"], CatalogueText)


def test_a_file_of_the_same_owner_is_not_asked_about(machine: Machine, mbox: Path) -> None:
    machine.streams(mbox)
    second = mbox.with_name("Archive")
    second.write_bytes(MAIL)
    machine.streams(second, "--ask")
    with machine.store.snapshot() as snapshot:
        assert len(snapshot.connections()) == 1


def test_an_account_of_another_source_is_refused(
    machine: Machine, mbox: Path, tmp_path: Path
) -> None:
    machine.streams(mbox)
    with machine.store.snapshot() as snapshot:
        (mail,) = snapshot.connections()
    bank = as_folder(SPECIMENS["bank"], tmp_path / "bank")
    _, refused = machine.run("import", bank, "--connection", mail.connection_id)
    assert refused["error"]["code"] == "connection_not_writable"
