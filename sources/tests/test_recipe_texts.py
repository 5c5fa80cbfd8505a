"""The owner's recipes, as the process that reads exports gets and reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pdpp_kernel.source_item import SourceRecord
from pdpp_kernel.system.confinement import Limits
from pdpp_sources.common.errors import BadRecord, RecipeError
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess, Wanted
from pdpp_sources.recipe_texts import MOST_BYTES, MOST_RECIPES, recipe_texts

RECIPE = """
recipe = 1
key = "rides"
name = "Rides"
detail = "Where you rode."
how_to_export = "Ask the shop."

[[stream]]
name = "rides"
label = "Rides"
detail = "Each ride."
has = ["no", "began"]
key = ["number"]
time = "began"
fields = { number = { from = "no", is = "string" }, began = { is = "instant" } }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "recipes"
    made.mkdir()
    return made


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "rides.json"
    path.write_text('[{"no": 7, "began": "2024-07-01T08:00:00Z"}]', encoding="utf-8")
    return path


@pytest.fixture
def reader(folder: Path) -> Iterator[ReaderProcess]:
    with ReaderProcess(CostlyPlaces(), recipes=folder) as process:
        yield process


def test_a_recipe_of_the_owner_reads_beside_others_that_cannot_be_used(
    reader: ReaderProcess, folder: Path, export: Path
) -> None:
    (folder / "rides.toml").write_text(RECIPE)
    (folder / "again.toml").write_text(RECIPE + "# of the same key, and first by its name")
    (folder / "broken.toml").write_text(RECIPE.replace("time", "tmie"))
    (folder / "bytes.toml").write_bytes(b"\xff\xfe")
    (folder / "long.toml").write_text(RECIPE + "#" * MOST_BYTES)
    (reading,) = reader.look(export, Wanted()).readings
    assert reading.connector_key == "rides"
    assert [i.data["id"] for i in reading.items() if isinstance(i, SourceRecord)] == ["7"]
    assert "--as" not in reading.seen.why
    assert {Path(each.path).name: each.code for each in reader.unusable_recipes} == {
        "broken.toml": "recipe_unknown_key",
        "bytes.toml": "recipe_unreadable",
        "long.toml": "recipe_unreadable",
        "rides.toml": "recipe_key_taken",
    }
    known = {source.connector_key: source.recipe for source in reader.sources().sources}
    assert known["rides"] == str(folder / "again.toml")


def test_a_named_recipe_reads_alone_though_the_folder_has_one_of_its_key(
    reader: ReaderProcess, folder: Path, export: Path, tmp_path: Path
) -> None:
    (folder / "rides.toml").write_text(RECIPE)
    (folder / "broken.toml").write_text("recipe = 1")
    (tmp_path / "mine.toml").write_text(RECIPE.replace('"Rides"', '"My rides"', 1))
    (reading,) = reader.look(export, Wanted(recipe=tmp_path / "mine.toml")).readings
    assert reading.seen.declaration["display"]["name"] == "My rides"
    assert reader.unusable_recipes == []


def test_a_source_and_a_recipe_are_not_both_named(
    reader: ReaderProcess, export: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(RECIPE)
    with pytest.raises(RecipeError) as caught:
        reader.look(export, Wanted("bank", recipe=tmp_path / "mine.toml"))
    assert caught.value.code == "recipe_not_alone"


def test_a_mended_recipe_is_read_again(reader: ReaderProcess, folder: Path, export: Path) -> None:
    (folder / "rides.toml").write_text(RECIPE.replace("time", "tmie"))
    reader.look(export, Wanted())
    (folder / "rides.toml").write_text(RECIPE)
    assert reader.look(export, Wanted()).readings[0].connector_key == "rides"
    assert reader.unusable_recipes == []


def test_a_recipe_within_an_export_is_a_file_that_nothing_reads(
    reader: ReaderProcess, tmp_path: Path
) -> None:
    place = tmp_path / "export"
    (place / "recipes").mkdir(parents=True)
    (place / "rides.json").write_text('{"no": 7, "began": "2024-07-01T08:00:00Z"}')
    (place / "recipes" / "rides.toml").write_text(RECIPE)
    contents = reader.look(place, Wanted())
    assert [reading.connector_key for reading in contents.readings] != ["rides"]
    assert contents.unread == {"recipes": ["recipes/rides.toml"]}
    assert [inside.name for inside in reader.recipes_inside] == ["recipes/rides.toml"]
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(BadRecord):
        reader.look(tmp_path / "a.csv", Wanted(kinds={"c": "number"}))
    assert reader.recipes_inside == []  # those of another export


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An export with one event, and a file that a recipe may describe."""
    made = tmp_path / "export"
    made.mkdir()
    (made / "rides.json").write_text('[{"no": 7, "began": "2024-07-01T08:00:00Z"}]')
    event = "BEGIN:VEVENT\nUID:1\nDTSTART:20240701T080000Z\nSUMMARY:Ride\nEND:VEVENT\n"
    (made / "a.ics").write_text(f"BEGIN:VCALENDAR\nVERSION:2.0\n{event}END:VCALENDAR\n")
    return made


def test_a_recipe_within_an_export_that_is_costly_to_parse_costs_no_other_file(
    place: Path,
) -> None:
    (place / "a.toml").write_text(f"{'.'.join('a' * 100_000)} = 1\n")
    (place / "b.toml").write_text(RECIPE)
    with ReaderProcess(CostlyPlaces(), Limits(seconds=1)) as reader:
        contents = reader.look(place, Wanted())
        assert [each.connector_key for each in contents.readings] == ["calendar"]
        assert contents.unread["costly"] == ["a.toml"]
        assert reader.recipes_inside == []


def test_what_a_recipe_within_an_export_makes_costly_costs_the_recipe_alone(place: Path) -> None:
    # Thirty million comparisons: more than the second on any machine and Python.
    for number in range(1_500):
        (place / f"{number}.txt").write_text("a")
    patterns = ", ".join(f'"{number}*"' for number in range(20_000))
    (place / "a.toml").write_text(RECIPE.replace("has =", f"files = [{patterns}]\nhas =", 1))
    with ReaderProcess(CostlyPlaces(), Limits(seconds=1)) as reader:
        contents = reader.look(place, Wanted())
        assert [each.connector_key for each in contents.readings] == ["calendar"]
        assert contents.unread["costly"] == ["a.toml"]


def test_a_recipe_within_an_export_takes_the_place_of_no_source(
    reader: ReaderProcess, place: Path
) -> None:
    for key in ("spotify", "calendar", "table"):
        (place / f"{key}.toml").write_text(RECIPE.replace('"rides"', f'"{key}"', 1))
    reader.look(place, Wanted())
    assert reader.recipes_inside == []


def test_those_beyond_the_most_are_named_and_not_read(folder: Path) -> None:
    for number in range(MOST_RECIPES + 1):
        (folder / f"{number:04}.toml").write_text(RECIPE)
    texts = recipe_texts(folder)
    assert [path for path, text in texts.items() if text is None] == [
        str(folder / f"{MOST_RECIPES:04}.toml")
    ]


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"#" * (MOST_BYTES + 1)])
def test_a_named_recipe_that_cannot_be_read_is_refused(
    content: bytes | None, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "rides.toml").write_bytes(content)
    with pytest.raises(RecipeError) as caught:
        recipe_texts(None, tmp_path / "rides.toml")
    assert caught.value.code == "recipe_unreadable"
