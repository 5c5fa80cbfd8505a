"""Entries in = new + updated + unchanged + rejected + named ones, in the report of an import."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from personal_server.domain.source_item import Data
from tests.cli.import_machine import Machine
from tests.sources.specimens import SPECIMENS
from tests.sources.specimens.files import as_folder
from tests.sources.test_contract_accounting import BESIDE, COUNTED


def told(machine: Machine, path: Path, streams: frozenset[str]) -> tuple[int, int]:
    """How many entries the report names, and how many of them changed what is stored."""
    _, printed = machine.run("import", path)
    reports: list[Data] = printed["imports"]
    tallies = [t for r in reports for name, t in r["streams"].items() if name in streams]
    changed = sum(tally["new"] + tally["updated"] for tally in tallies)
    stored = changed + sum(tally["unchanged"] + tally["rejected"] for tally in tallies)
    named = [skip for r in reports for skip in r["skipped"] if skip["code"] not in BESIDE]
    return stored + sum(skip["count"] for skip in named), changed


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
