"""Entries in are records and what is named as left out: nothing is silently dropped or made one.

Counted here by the plainest means there are, which share nothing with the readers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Skipped, SourceRecord
from server.tests.cli.import_machine import Machine
from sources.tests.accounting import BESIDE, COUNTED, told
from sources.tests.reading import read_path, records_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder, as_zip
from sources.tests.specimens.table import ODD


def test_the_entries_of_every_source_are_counted() -> None:
    assert COUNTED.keys() == SPECIMENS.keys()


@pytest.mark.parametrize("key", sorted(COUNTED))
def test_every_entry_is_a_record_or_named(key: str, tmp_path: Path) -> None:
    pattern, count, streams = COUNTED[key]
    files: Files = {n: b for n, b in SPECIMENS[key].items() if re.fullmatch(pattern, n)}
    items = [item for _, item in read_path(as_folder(SPECIMENS[key], tmp_path))]
    records = [
        i for i in items if isinstance(i, SourceRecord) and (i.stream in streams or not streams)
    ]
    skips = [i for i in items if isinstance(i, Skipped) and i.code not in BESIDE]
    assert sum(map(count, files.values())) == len(records) + len(skips)


# What stands in the lines of each odd table, read by eye: the cells of every row, as text.
CELLS = {
    "no names.csv": [
        ("2024-01-05", "Coffee", "3.1"),
        ("2024-01-06", "Tea", "2.0"),
        ("2024-01-06", "Tea", "2.0"),
    ],
    "films.csv": [("Metropolis",), ("Stalker, the long one",)],
    "amounts.csv": [("2024-01-05", "1", ""), ("2024-01-06", "3", ""), ("2024-01-07", "5", "6")],
    "account.csv": [("2024-01-30", "Bäcker", "-3.1")],
    "quote.csv": [("2", 'well "said"', "good"), ("3", "so", "good")],
    "mac.csv": [("José", "Málaga"), ("Zoë", "Genève")],
    "wide.tsv": [("Zoë", "1"), ("Ida", "2")],
}


@pytest.mark.parametrize("name", sorted(ODD))
def test_every_cell_of_a_table_is_a_value(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(ODD[name])
    found = [
        sorted(str(value) for field, value in each.items() if field != "id" and value is not None)
        for each in records_of(read_path(tmp_path / name))
    ]
    shown = [sorted(cell for cell in row if cell) for row in CELLS[name]]
    if name == "quote.csv":  # its first column is the key, called `id` as that of the record is
        shown = [sorted(cells[1:]) for cells in CELLS[name]]
    assert found == shown


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


@pytest.mark.parametrize("key", ["calendar", "contacts", "mail", "slack", "telegram", "whatsapp"])
def test_every_entry_is_in_the_report_of_the_first_import_and_of_the_second(
    key: str, tmp_path: Path
) -> None:
    pattern, count, streams = COUNTED[key]
    counted = sum(count(b) for n, b in SPECIMENS[key].items() if re.fullmatch(pattern, n))
    path, machine = as_folder(SPECIMENS[key], tmp_path), Machine()
    first, changed = told(machine, path, streams)
    again, changed_again = told(machine, path, streams)
    assert (first, again, changed_again) == (counted, counted, 0)
    assert 0 < changed <= counted
