"""Entries in are records and what is named as left out: nothing is silently dropped or made one.

Counted here by the plainest means there are, which share nothing with the readers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Skipped, SourceRecord
from sources.tests.accounting import BESIDE, COUNTED
from sources.tests.reading import read_path, records_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder
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
