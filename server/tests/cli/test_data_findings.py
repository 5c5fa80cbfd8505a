"""`pdpp doctor --data` on a real data directory, whole and damaged."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import apsw
import cyclopts
import pytest

from pdpp_mcp_server.commands.connect import CommandContext
from pdpp_mcp_server.commands.exits import run_app
from personal_server.app.stores import Stores, open_stores
from personal_server.cli.data_findings import PARTS
from personal_server.cli.doctor import doctor_command
from personal_server.settings import Settings
from personal_server.storage.checksums import line_sum, record_sum
from personal_server.storage.sql.records import copy_slices, rebuilds
from personal_server.storage.sql.records.blob_files import PREFIX, blob_path
from server.tests.storage.ports.asking import search
from server.tests.storage.worlds import FILES_STREAM, furnish, note, scope, write

NOTES_NAME, FILES_NAME = "notes (cin_a)", "files (cin_a)"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "160")
    made = Settings(data_dir=tmp_path / "data")
    with open_stores(made, serving=True) as stores:
        furnish(stores.records, "cin_a")
        _fill(stores)
    return made


def _fill(stores: Stores) -> None:
    upload, _ = stores.records.receive_blob("cin_a", [b"a picture"], "image/png", 1, 1_000)
    bytes_of = {"blob_id": upload.blob_id}
    notes = [note(f"n{i}", title=f"Ünique {i}", body="rain and sun " * 50) for i in range(300)]
    write(stores.records, "cin_a", [*notes, note("shown", blob_ref=bytes_of)])
    write(
        stores.records, "cin_a", [note("n1", body="x" * 40_000), note("n2", body="東京 rain"), "n3"]
    )
    write(stores.records, "cin_a", [{"id": "f1", "note_id": "n1"}], stream=FILES_STREAM)


@pytest.fixture
def file(settings: Settings) -> Iterator[apsw.Connection]:
    """The database, open to whoever wants to damage it."""
    with closing(apsw.Connection(str(settings.database_path))) as found:
        yield found


def execute(file: apsw.Connection, statement: str, *params: object) -> Any:
    """What a statement gives; only value, line or lines."""
    untyped: Any = file  # the driver's own stub names a type that Python 3.11 lacks
    return untyped.execute(statement, params).get


def tables(file: apsw.Connection) -> int:
    return execute(file, "SELECT tables FROM sources WHERE stream = 'notes'")


def run(file: apsw.Connection, statement: str, **names: object) -> Any:
    """A statement on the tables of the notes, whose number is written `#`."""
    for name, text in {"#": tables(file), **names}.items():
        statement = statement.replace(name, str(text))
    return execute(file, statement)


@dataclass(frozen=True)
class Found:
    """A finding as programs read it; `said` is searched for keys and names alone."""

    check: str
    code: str
    state: str
    fault: str = ""
    said: str = ""
    mend: str = ""

    def names(self, *named: str) -> bool:
        """Whether each of these keys or names stands among the words."""
        return all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.said) for name in named)


def doctor(capture: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[Found]]:
    """Exit code and findings."""
    app = cyclopts.App(name="pdpp")
    app.command(doctor_command(CommandContext()), name="doctor")
    code = run_app(app, ["doctor", "--data", "--json", *words])
    found = json.loads(capture.readouterr().out)
    return code, [Found(**each) for each in found]


def wrong(findings: list[Found]) -> list[Found]:
    return [found for found in findings if found.state == "wrong"]


def faults(findings: list[Found]) -> list[tuple[str, str]]:
    """What is wrong: the code of the check, and of its fault."""
    return [(found.code, found.fault) for found in wrong(findings)]


def test_a_sound_directory_has_a_line_for_each_thing_that_was_checked(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    assert settings.database_path.exists()
    code, found = doctor(capsys)
    assert (code, wrong(found)) == (0, [])
    assert [each.code for each in found] == [
        "database",
        "stream",
        "stream",
        "change_feed",
        "blobs",
    ]
    counts = {each.check: re.findall("[0-9]+", each.said) for each in found}
    assert (counts[NOTES_NAME], counts[FILES_NAME]) == (["300"], ["1"])


@pytest.mark.parametrize("kind", ["h", "d", "g"])
def test_a_page_with_flipped_bytes_is_found_and_its_table_named(
    settings: Settings,
    file: apsw.Connection,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    name = f"{kind}{tables(file)}"
    size = execute(file, "PRAGMA page_size")
    root = execute(file, "SELECT rootpage FROM sqlite_schema WHERE name = ?", name)
    file.close()
    with settings.database_path.open("r+b") as raw:
        raw.seek((root - 1) * size)
        page = bytearray(raw.read(size))
        page[:64] = bytes(each ^ 0xFF for each in page[:64])
        raw.seek((root - 1) * size)
        raw.write(page)
    code, found = doctor(capsys)
    assert code == 69
    assert faults(found) == [("database", "damaged_pages")]
    assert PARTS[kind] in found[0].said
    assert found[0].names(NOTES_NAME, name)


def test_words_that_an_index_lacks_or_has_beyond_are_found_and_made_anew(
    settings: Settings, file: apsw.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    run(file, "DELETE FROM w# WHERE rowid = (SELECT id FROM r# WHERE k = 'n7')")
    code, found = doctor(capsys)
    assert (code, faults(found)) == (69, [("stream", "words_differ")])
    assert [each.check for each in wrong(found)] == [NOTES_NAME]
    code, found = doctor(capsys, "--repair")
    assert (code, wrong(found)) == (0, [])
    run(file, "INSERT INTO w# (rowid, words) VALUES (4711, '0:none')")
    assert doctor(capsys)[0] == 69
    assert doctor(capsys, "--repair")[0] == 0
    assert doctor(capsys)[0] == 0
    with open_stores(settings, serving=False) as stores:
        assert len(search(stores.records, "rain", scopes=(scope(),)).candidates) == 298


def test_columns_that_are_not_those_of_the_texts_are_made_anew(
    file: apsw.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = run(file, "PRAGMA table_info(r#)")
    (name, *_) = [each[1] for each in columns if each[1].startswith("c") and each[1][1:].isdigit()]
    run(file, "UPDATE r# SET COLUMN = CAST(x'ff' AS TEXT) WHERE k = 'n9'", COLUMN=name)
    assert doctor(capsys)[0] == 69
    assert doctor(capsys, "--repair")[0] == 0
    assert doctor(capsys)[0] == 0


@pytest.mark.parametrize("damage", ["CAST(x'ff' AS TEXT)", "'{\"id\":'", "'[]'"])
def test_a_damaged_text_is_told_and_nothing_is_repaired_from_it(
    file: apsw.Connection, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    number = tables(file)
    place = run(file, "SELECT id FROM r# WHERE k = 'n5'")
    run(file, "UPDATE h# SET data = DAMAGE WHERE id = PLACE", DAMAGE=damage, PLACE=place)
    for words in ((), ("--repair",)):
        code, found = doctor(capsys, *words)
        assert code == 69
        assert faults(found) == [("stream", "damaged_records")]
        assert wrong(found)[0].names("1", "n5")
    assert tables(file) == number


def test_letters_that_changed_are_named_and_healed_by_a_write(
    settings: Settings, file: apsw.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    place = run(file, "SELECT id FROM r# WHERE k = 'n5'")
    run(file, "UPDATE h# SET data = replace(data, 'rain', 'gold') WHERE id = PLACE", PLACE=place)
    code, found = doctor(capsys)
    assert code == 69
    assert faults(found) == [("stream", "damaged_records")]
    assert wrong(found)[0].names("1", "n5")
    with open_stores(settings, serving=False) as stores:
        write(stores.records, "cin_a", [note("n5", title="Ünique 5", body="rain")])
    assert doctor(capsys)[0] == 0


def test_a_record_under_another_key_and_changes_the_feed_lacks_are_named(
    file: apsw.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    run(file, "UPDATE r# SET k = 'foreign' WHERE k = 'n5'")
    asked = "SELECT id, cs, ce, data FROM r# JOIN h# USING (id) WHERE k = 'foreign'"
    row, created, created_at, text = cast("tuple[int, int, int, str]", run(file, asked))
    own = record_sum(line_sum("foreign", created, created_at, None), text.encode())
    run(file, "UPDATE h# SET sum = SUM WHERE id = ROW", SUM=own, ROW=row)
    execute(file, "DELETE FROM changes WHERE key = 'n6'")
    code, found = doctor(capsys)
    assert code == 69
    assert faults(found) == [("stream", "misnamed_records"), ("stream", "unexplained_records")]
    misnamed, unexplained = wrong(found)
    assert misnamed.names("1", "foreign")
    assert unexplained.names("2", "n6", "foreign")
    assert {each.check for each in wrong(found)} == {NOTES_NAME}


def test_a_feed_behind_or_beyond_the_store_is_found(
    file: apsw.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (-5, 50):
        execute(file, "UPDATE store SET value = value + ? WHERE name = 'sequence'", step)
        assert faults(doctor(capsys)[1]) == [("change_feed", "counter_differs")]
    execute(file, "UPDATE store SET value = value - 45 WHERE name = 'sequence'")
    other = execute(file, "SELECT source FROM sources WHERE stream = 'files'")
    execute(
        file,
        "INSERT INTO changes SELECT ?, sequence, key, was, was_at, now, now_at, fields, emitted_at,"
        " written_at, prev, next, was_held FROM changes WHERE key = 'n8'",
        other,
    )
    found = doctor(capsys)[1]
    assert faults(found) == [("change_feed", "disordered")]
    assert wrong(found)[0].names("1")


def test_missing_changed_and_stray_blobs_are_named(
    settings: Settings, file: apsw.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    blob_id = execute(file, "SELECT blob_id FROM blob_uploads")
    path = blob_path(settings.data_dir / "blobs", blob_id)
    path.write_bytes(b"another picture")
    code, found = doctor(capsys)
    assert code == 69
    assert faults(found) == [("blobs", "changed")]
    assert wrong(found)[0].names(blob_id, NOTES_NAME)
    path.rename(path.with_name("0" * 64))
    code, found = doctor(capsys, "--repair")
    assert faults(found) == [("blobs", "missing")]
    assert wrong(found)[0].names(blob_id, NOTES_NAME)
    assert path.with_name("0" * 64).exists(), "what is young may belong to an upload"


def test_many_missing_blobs_are_one_line_with_their_number(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_stores(settings, serving=False) as stores:
        for number in range(6):
            content = f"picture {number}".encode()
            upload, _ = stores.records.receive_blob("cin_a", [content], "image/png", 1, 1_000)
            bytes_of = {"blob_id": upload.blob_id}
            write(stores.records, "cin_a", [note(f"with {number}", blob_ref=bytes_of)])
            blob_path(settings.data_dir / "blobs", upload.blob_id).unlink()
    code, found = doctor(capsys)
    assert code == 69
    assert faults(found) == [("blobs", "missing")]
    assert wrong(found)[0].names("6", NOTES_NAME)
    assert wrong(found)[0].said.count(PREFIX) == 3


def test_old_files_that_nothing_refers_to_are_told_and_swept(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    stray = blob_path(settings.data_dir / "blobs", PREFIX + "0" * 64)
    stray.parent.mkdir()
    stray.write_bytes(b"of an upload that was interrupted")
    os.utime(stray, (0, 0))
    code, found = doctor(capsys)
    assert (code, found[-1].code, found[-1].state) == (0, "unused_blobs", "hint")
    assert doctor(capsys, "--repair")[0] == 0
    assert not stray.exists()


def test_a_rebuild_that_is_under_way_is_finished_by_a_repair(
    file: apsw.Connection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuilds, "AT_ONCE", 10)
    monkeypatch.setattr(copy_slices, "LINES_AT_ONCE", 100)
    run(file, "DELETE FROM w#")
    assert doctor(capsys, "--repair")[0] == 0
    assert execute(file, "SELECT count(*) FROM rebuilds") == 0


def test_an_address_or_the_data_is_asked_for_and_a_directory_without_a_database_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PDPP_DATA_DIR", str(tmp_path / "nowhere"))
    app = cyclopts.App(name="pdpp")
    app.command(doctor_command(CommandContext()), name="doctor")
    assert run_app(app, ["doctor", "http://127.0.0.1:7662", "--data"]) == 64
    assert run_app(app, ["doctor", "http://127.0.0.1:7662", "--repair"]) == 64
    assert run_app(app, ["doctor", "--data"]) == 5
    assert not (tmp_path / "nowhere").exists()
