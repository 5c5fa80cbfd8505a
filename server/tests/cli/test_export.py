from __future__ import annotations

import json
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from server.tests.cli.test_disclosures import SEARCH, entry
from server.tests.console.household import HOME


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_lines_go_to_standard_output_when_no_file_is_named(terminal: Any) -> None:
    assert terminal.run("export", "--connection", HOME) == 0
    head, *records, end = lines(terminal.out)
    assert head["object"] == "export"
    assert {record["connection_id"] for record in records} == {HOME}
    assert end["record_count"] == len(records) > 0
    assert terminal.err == ""


def test_a_zip_has_the_members_of_a_tar(terminal: Any, tmp_path: Path) -> None:
    tar, packed = tmp_path / "all.tar", tmp_path / "all.zip"
    assert (terminal.run("export", tar), terminal.run("export", packed)) == (0, 0)
    with tarfile.open(tar) as archive, zipfile.ZipFile(packed) as zipped:
        assert zipped.testzip() is None
        assert zipped.namelist() == archive.getnames()
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600


def test_an_archive_is_named_by_its_file(terminal: Any, tmp_path: Path) -> None:
    target = tmp_path / "all.tar"
    assert terminal.run("export", target) == 0
    with tarfile.open(target) as archive:
        names = archive.getnames()
    assert {"manifest.json", "connections.json", "grants.json", "disclosures.ndjson"} <= set(names)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert terminal.out == ""
    assert "bytes in" in terminal.err


def test_what_apps_asked_is_in_an_archive_only_where_that_is_wanted(
    terminal: Any, tmp_path: Path
) -> None:
    terminal.house.disclosures.append_disclosures([entry(1), entry(2, detail=SEARCH)])
    found: list[list[dict[str, Any]]] = []
    for name, wanted in (("log.tar", ()), ("asked.tar", ("--asked",))):
        assert terminal.run("export", tmp_path / name, *wanted) == 0
        with tarfile.open(tmp_path / name) as archive:
            member = archive.extractfile("disclosures.ndjson")
            assert member is not None
            found.append(lines(member.read().decode()))
    assert not any({"asked", "keys"} & set(line) for line in found[0])
    (second, first) = found[1]
    assert (second["asked"], second["keys"]) == (SEARCH.asked, list(SEARCH.keys))
    assert [{**line, "asked": 0, "keys": 0} for line in found[0]] == [
        {**line, "asked": 0, "keys": 0} for line in (second, first)
    ]
    assert "asked" not in first


@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (("lines.ndjson", "--asked"), 64),
        (("--connection", "cin_nobody"), 5),
        (("--stream", "nothing"), 5),
        (("--format", "7z"), 64),
        (("out.rar",), 64),
        (("/nowhere/at/all.tar",), 69),
    ],
)
def test_what_cannot_be_exported_says_why(
    terminal: Any, arguments: tuple[str, ...], exit_code: int
) -> None:
    assert terminal.run("export", *arguments) == exit_code
    assert terminal.out == ""
    assert terminal.err.startswith("pdpp: ")


def test_an_export_is_not_for_the_screen(terminal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert terminal.run("export") == 64


def test_a_file_appears_whole_or_not_at_all(
    terminal: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> Any:
        yield b"half"
        raise OSError("no space left")

    target = tmp_path / "all.ndjson"
    monkeypatch.setattr("personal_server.cli.export.export_lines", broken)
    assert terminal.run("export", target) == 69
    assert list(tmp_path.glob("*export*")) == []
    assert not target.exists()
