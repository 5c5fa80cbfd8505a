"""An import of a folder with an export of every kind leaves no file of it unnamed."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from server.tests.cli.import_machine import Machine
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder

OF_NO_KIND: Files = {
    "odd/letter.docx": b"\x00\x01",
    "odd/todo.txt": b"buy milk\ncall Ann\n",
    "odd/nothing.bin": b"",
    ".DS_Store": b"\x00\x00\x00\x01Bud1",
    ".hidden/diary.txt": b"dear diary",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("every")
    for key, files in SPECIMENS.items():
        as_folder(files, root / key)
    as_folder(OF_NO_KIND, root)
    (root / "elsewhere").symlink_to("odd")
    return root


@pytest.fixture(scope="module")
def report(folder: Path) -> Data:
    _, printed = Machine().run("import", folder)
    return printed


def left_of(report: Data) -> dict[str, list[str]]:
    (left,) = report["not_read"]
    return {sort: each["files"] for sort, each in left.items() if sort != "path"}


def test_every_file_is_read_by_one_source_or_named_as_left(folder: Path, report: Data) -> None:
    there = [each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file()]
    read = [name for each in report["imports"] for name in each["files"]]
    left = [name for names in left_of(report).values() for name in names]
    expected = {name for name in there if not name.startswith(".hidden/")}
    assert sorted([*read, *left]) == sorted(expected | {".hidden", "elsewhere"})


def test_every_source_reads_its_own_export(report: Data) -> None:
    keys = [each["connector_key"] for each in report["imports"]]
    assert sorted(keys) == sorted(SPECIMENS.keys() - {"table"})
    for each in report["imports"]:
        assert any(name.startswith(f"{each['connector_key']}/") for name in each["files"])


def test_what_is_left_is_told_by_its_kind(report: Data) -> None:
    left = left_of(report)
    assert set(OF_NO_KIND) & set(left["unknown"]) == {"odd/letter.docx", "odd/todo.txt"}
    assert left["empty"] == ["odd/nothing.bin"]
    assert left["hidden"] == [".DS_Store", ".hidden"]
    assert left["links"] == ["elsewhere"]


def test_every_skip_has_a_place_and_a_reason(report: Data) -> None:
    skips = [skip for each in report["imports"] for skip in each["skipped"]]
    assert skips
    for skip in skips:
        assert len(skip["examples"]) == min(skip["count"], 5)
        assert all(each["where"] and each["reason"] for each in skip["examples"])


def test_a_file_left_as_a_table_is_read_as_one_when_it_is_named(folder: Path, report: Data) -> None:
    tables = left_of(report)["tables"]
    assert "table/shopping.csv" in tables
    for name in tables:
        code, printed = Machine().run("import", folder / name, "--as", "table")
        (read,) = printed["imports"]
        assert (code, read["files"]) == (0, [Path(name).name])
        assert sum(stream["new"] for stream in read["streams"].values()) > 0
