"""Every entry of an export is in the report of its import: nothing is silently dropped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from server.tests.cli.import_machine import Machine
from sources.tests.accounting import COUNTED
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder, as_zip
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


@pytest.mark.parametrize(
    "key",
    [
        *(
            "calendar",
            "contacts",
            "evernote",
            "googlevoice",
            "kindle",
            "mail",
            "meta",
            "phone",
            "slack",
        ),
        *("telegram", "tracks", "whatsapp"),
    ],
)
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
