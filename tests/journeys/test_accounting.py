"""Every entry of an export is in the report of its import: nothing is silently dropped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import SOURCES
from server.tests.cli.import_machine import Machine
from sources.tests.accounting import COUNTED
from sources.tests.recipe_accounting import entries_of_recipe
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder, as_zip
from sources.tests.specimens.notes import APPLE, BEAR, PAGES
from sources.tests.specimens.recipes import RECIPE_SPECIMENS
from tests.journeys.accounting import told

_BREAD, _OVEN = f"Bread {'ab' * 16}", f"Oven {'0c' * 16}"
NOTION: Files = {
    f"Home/{_BREAD}.md": b"# Bread\n",
    f"Home/{_BREAD}/Rye {'1d' * 16}.md": b"# Rye\n\nLoaves: 2\n",
    f"Home/{_BREAD}/Spelt {'2e' * 16}.md": b"# Spelt\n\nLoaves: 1\n",
    f"Home/{_BREAD}.csv": b"\xef\xbb\xbfName,Loaves\nRye,2\n",
    f"Home/{_BREAD}_all.csv": b"\xef\xbb\xbfName,Loaves,Note\nRye,2,\nSpelt,1,dry\nSpelt,1,dry\n",
    f"Home/{_OVEN}.csv": b"\xef\xbb\xbfDay,Degrees\n2024-01-05,250\n2024-01-06,230\n",
}


def test_every_page_and_every_row_of_a_notion_workspace_is_a_record(tmp_path: Path) -> None:
    as_zip(NOTION, tmp_path / "ExportBlock-Part-1.zip")
    parts = {"ExportBlock-Part-1.zip": (tmp_path / "ExportBlock-Part-1.zip").read_bytes()}
    outer = as_zip(parts, tmp_path / "Export-0f.zip")
    machine = Machine()
    _, printed = machine.run("import", outer)
    streams = {each["connector_key"]: each["streams"] for each in printed["imports"]}
    read = {name: t["new"] for each in streams.values() for name, t in each.items() if t["new"]}
    assert read == {"notes": 3, "bread": 3, "oven": 2}
    assert set(streams) == {"notes", "table-notion-databases"}
    (left,) = printed["not_read"]
    assert left.keys() == {"path", "views"}
    assert left["views"] == {"count": 1, "files": [f"Home/{_BREAD}.csv"]}
    _, again = machine.run("import", outer)
    assert {t["new"] for each in again["imports"] for t in each["streams"].values()} == {0}


# Notes as programs tell of them: what is a note there, by its file.
OF_PROGRAMS: dict[str, tuple[Files, str]] = {
    "bear": (BEAR, r".*/text\.(?:md|markdown|txt)"),
    "apple_notes": (APPLE, r".*\.txt"),
    "pages": (PAGES, r".*\.html"),
}


def test_every_source_and_every_recipe_that_ships_is_counted() -> None:
    assert COUNTED.keys() == {source.connector_key for source in SOURCES}
    assert RECIPE_SPECIMENS.keys() == {recipe.connector_key for recipe in shipped_recipes()}


def twice(files: Files, streams: frozenset[str], folder: Path) -> tuple[int, int]:
    """How many entries an import tells of, and how many of those it stored.

    It is made twice: the second tells as many, and stores none.
    """
    path, machine = as_folder(files, folder), Machine()
    first, changed = told(machine, path, streams)
    assert told(machine, path, streams) == (first, 0)
    return first, changed


@pytest.mark.parametrize("key", sorted(COUNTED))
def test_every_entry_is_in_the_report_of_the_first_import_and_of_the_second(
    key: str, tmp_path: Path
) -> None:
    pattern, count, streams = COUNTED[key]
    counted = sum(count(b) for n, b in SPECIMENS[key].items() if re.fullmatch(pattern, n))
    told_first, changed = twice(SPECIMENS[key], streams, tmp_path)
    assert told_first == counted
    assert 0 < changed <= counted


@pytest.mark.parametrize("key", sorted(RECIPE_SPECIMENS))
def test_every_entry_that_a_recipe_reads_is_in_both_reports(key: str, tmp_path: Path) -> None:
    counted = entries_of_recipe(key, RECIPE_SPECIMENS[key])
    told_first, changed = twice(RECIPE_SPECIMENS[key], frozenset(), tmp_path)
    assert told_first == counted
    assert 0 < changed <= counted


@pytest.mark.parametrize("key", sorted(OF_PROGRAMS))
def test_every_note_of_a_program_is_in_both_reports(key: str, tmp_path: Path) -> None:
    files, pattern = OF_PROGRAMS[key]
    counted = sum(bool(re.fullmatch(pattern, name)) for name in files)
    assert twice(files, frozenset({"notes"}), tmp_path) == (counted, counted)
