"""Imports repeated and overlapping, of every source that is registered."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data, SourceRecord
from server.tests.cli.import_machine import Machine
from sources.tests.reading import entries_of, read_if_known
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.contacts import CONTACTS
from sources.tests.specimens.files import as_folder, as_zip
from sources.tests.specimens.mail import MAIL

every_specimen = pytest.mark.parametrize("key", sorted(SPECIMENS))
Known = dict[tuple[str, str], Data]


def known(path: Path) -> Known:
    """The records of an export."""
    items = [item for _, item in read_if_known(path) if isinstance(item, SourceRecord)]
    return {(item.stream, item.data["id"]): item.data for item in items}


def tallied(printed: Data, name: str) -> int:
    return sum(
        stream[name] for report in printed["imports"] for stream in report["streams"].values()
    )


@every_specimen
def test_importing_again_changes_nothing(machine: Machine, key: str, tmp_path: Path) -> None:
    path = as_zip(SPECIMENS[key], tmp_path / "shopping.zip")
    _, first = machine.run("import", path)
    stored = machine.count()
    _, again = machine.run("import", path)
    assert tallied(first, "new") == stored > 0
    assert (tallied(again, "new"), tallied(again, "updated")) == (0, 0)
    assert tallied(again, "unchanged") == tallied(first, "read")
    assert machine.count() == stored


@every_specimen
@pytest.mark.parametrize("most", [6, pytest.param(1_000, marks=pytest.mark.long)])
def test_a_later_export_changes_only_what_it_brings(key: str, most: int, tmp_path: Path) -> None:
    late = as_folder(SPECIMENS[key], tmp_path / "late")
    after = known(late)
    entries = [*entries_of(late)]
    apart = max(1, -(-len(entries) // most))
    for number, (name, begin, _) in enumerate(entries[::apart]):
        shorter = {**SPECIMENS[key], name: SPECIMENS[key][name][:begin]}
        early = as_folder(shorter, tmp_path / f"early-{number}")
        before = known(early)
        machine = Machine()
        machine.run("import", early)
        _, printed = machine.run("import", late)
        assert tallied(printed, "new") == len(after.keys() - before.keys())
        assert tallied(printed, "updated") == sum(
            after[each] != data for each, data in before.items() if each in after
        )
        assert machine.count() == len(after.keys() | before.keys())


def test_the_parts_of_a_split_export_meet_in_one_connection_for_each_source(
    machine: Machine, tmp_path: Path
) -> None:
    mail, agenda = "Takeout/Mail/All mail.mbox", "Takeout/Calendar/Home.ics"
    calendar = SPECIMENS["calendar"]["Calendar/Home.ics"]
    first = as_zip({mail: MAIL, agenda: calendar}, tmp_path / "takeout-20260101-001.zip")
    second = as_zip(
        {agenda: calendar, "Takeout/Contacts/All.vcf": CONTACTS, **SPECIMENS["google"]},
        tmp_path / "takeout-20260101-002.zip",
    )
    _, printed = machine.run("import", first, second)
    into = {(each["connector_key"], each["connection"]["name"]) for each in printed["imports"]}
    assert {key for key, _ in into} == {"mail", "calendar", "contacts", "google"}
    assert len(into) == 4
    _, again = machine.run("import", second, first)
    assert (tallied(again, "new"), tallied(again, "updated")) == (0, 0)
