"""Files that were a table before a recipe knew them, and recipes that lie in an export."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from pdpp_sources.reader_process import ReaderProcess
from server.tests.cli import import_machine
from server.tests.cli.import_machine import FixedZone, Machine

RECIPE = """recipe = 1
key = "rides"
name = "Rides"
detail = "Where you rode."
how_to_export = "Ask."
zone = "UTC"
[[stream]]
name = "rides"
label = "Rides"
detail = "Each ride."
has = ["no", "began"]
key = ["number"]
time = "began"
[stream.fields]
number = { from = "no", is = "string" }
began = { is = "instant" }
km = { is = "number", unit = "km" }
"""
RIDES = "no,began,km,town\n7,2026-07-01 08:00:00,3,Ulm\n8,2026-07-02 09:30:00,4,Ulm\n"
MORE = "no,began,km,town\n9,2026-08-01 08:00:00,3,Ulm\n"


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> ReaderProcess:
    """The reader, to which recipes can be given and from which they are taken again."""
    running = import_machine._running()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(running, "_recipes", None)
    return running


def imported(machine: Machine, path: Path, *options: str) -> dict[str, Any]:
    code, printed = machine.run("import", path, *options)
    assert code == 0, printed
    return printed["imports"][0]


def accounts(machine: Machine) -> dict[str, str]:
    with machine.store.snapshot() as snapshot:
        return {c.connection_id: c.connector_key for c in snapshot.connections()}


@pytest.mark.parametrize("is_named", [False, True])
def test_a_table_goes_on_where_it_is_once_a_recipe_knows_it(
    is_named: bool, tmp_path: Path, reader: ReaderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(zone=FixedZone("Europe/Berlin"))
    path = tmp_path / "trips_2026-07.csv"
    path.write_text(RIDES)
    imported(machine, path)
    before = accounts(machine)
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / "rides.toml").write_text(RECIPE)
    options = ["--recipe", str(recipes / "rides.toml")] if is_named else []
    if not is_named:
        monkeypatch.setattr(reader, "_recipes", recipes)

    again = imported(machine, path, *options)
    (tmp_path / "trips_2026-08.csv").write_text(MORE)
    later = imported(machine, tmp_path / "trips_2026-08.csv", *options)

    assert accounts(machine) == before
    assert again["known_as"] == later["known_as"] == ["rides"]
    (counts,) = again["streams"].values()
    assert (counts["new"], counts["updated"]) == (0, 2)
    (counts,) = later["streams"].values()
    assert counts["new"] == 1
    with machine.store.snapshot() as snapshot:
        (held,) = snapshot.stored_streams()
        rows = [row.data for row in snapshot.export(held.connection_id, held.stream)]
    assert sorted(str(row["began"]) for row in rows) == [
        "2026-07-01T08:00:00Z",
        "2026-07-02T09:30:00Z",
        "2026-08-01T08:00:00Z",
    ]
    assert "known_as" not in imported(machine, path, *options, "--as", "rides")
    assert "rides" in accounts(machine).values()


@pytest.mark.parametrize("other", ["table", "bank"])
def test_a_recipe_and_another_source_are_not_both_named(
    other: str, tmp_path: Path, reader: ReaderProcess
) -> None:
    assert reader is not None
    (tmp_path / "rides.csv").write_text(RIDES)
    (tmp_path / "rides.toml").write_text(RECIPE)
    options = ["--recipe", str(tmp_path / "rides.toml"), "--as", other]
    code, printed = Machine().run("import", tmp_path / "rides.csv", *options)
    assert code != 0
    assert printed["error"]["code"] == "recipe_not_alone"


def test_what_no_table_held_becomes_the_source_of_its_recipe(
    tmp_path: Path, reader: ReaderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    (tmp_path / "rides.csv").write_text("a,b\n1,2\n")
    imported(machine, tmp_path / "rides.csv")
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / "rides.toml").write_text(RECIPE)
    monkeypatch.setattr(reader, "_recipes", recipes)
    (tmp_path / "rides.csv").write_text(RIDES)
    report = imported(machine, tmp_path / "rides.csv")
    assert report["connector_key"] == "rides"
    assert report["streams"]["rides"]["new"] == 2


def test_a_recipe_that_is_called_otherwise_than_the_file_is_told(
    tmp_path: Path, reader: ReaderProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    named = RECIPE.replace('has = ["no"', 'files = ["rides*.csv"]\nhas = ["no"')
    (recipes / "rides.toml").write_text(named)
    monkeypatch.setattr(reader, "_recipes", recipes)
    (tmp_path / "trips.csv").write_text(RIDES)
    report = imported(Machine(), tmp_path / "trips.csv")
    assert report["connector_key"] == "table-trips"
    assert [each["code"] for each in report["noted"]] == ["no_file"]


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "rides.csv").write_text(RIDES)
    (folder / "rides.toml").write_text(RECIPE)
    return folder


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "key"), [("y\n", "rides"), ("n\n", "table-rides"), ("\n", "table-rides")]
)
def test_a_recipe_in_an_export_is_asked_about(
    answer: str, key: str, export: Path, monkeypatch: pytest.MonkeyPatch, reader: ReaderProcess
) -> None:
    machine = Machine()
    monkeypatch.setattr(sys, "stdin", _Terminal(answer))
    assert reader is not None
    machine.app(["import", str(export)], result_action="return_value")
    assert list(accounts(machine).values()) == [key]


def test_a_recipe_in_an_export_is_told_and_not_used_where_nobody_can_answer(
    export: Path, reader: ReaderProcess
) -> None:
    machine = Machine()
    code, printed = machine.run("import", export)
    assert (code, printed["imports"][0]["connector_key"]) == (0, "table-rides")
    assert printed["not_read"][0]["recipes"]["files"] == ["rides.toml"]
    assert [inside.name for inside in reader.recipes_inside] == ["rides.toml"]
