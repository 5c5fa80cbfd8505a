"""A stream of a recipe of the owner's that has no row in its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Skipped
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.missed_streams import misnamed_files
from pdpp_sources.recipes.recipe_shelf import own_recipe
from pdpp_sources.registry import readings, with_outside
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.own_recipe import EXPORT, RECIPE, read, told


def test_a_recipe_that_fits_is_told_nothing(tmp_path: Path) -> None:
    items = read(RECIPE, EXPORT, tmp_path)
    assert (told(items), len(items)) == ([], 4)


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ('rows = "/episodes"', 'rows = "/items"', "/items"),
        ('rows = "/episodes"', 'rows = "/"', "/"),
        ('has = ["at", "no"]', 'has = ["listened_at", "no"]', "listened_at"),
        ('rows = "/episodes"\nhas = ["at", "no"]', 'has = ["at"]', "at"),
    ],
)
def test_a_stream_that_finds_no_row_in_a_file_of_its_name_is_told(
    right: str, wrong: str, named: str, tmp_path: Path
) -> None:
    assert right in RECIPE
    items = read(RECIPE.replace(right, wrong), EXPORT, tmp_path)
    assert told(items) == [("no_rows", "history.json")]
    (skipped,) = (item for item in items if isinstance(item, Skipped))
    assert {"listens:", f"({named})"} <= set(str(skipped.reason).split())


@pytest.mark.parametrize("ending", [".csv", ".tab", ".geojson"])
def test_a_stream_of_files_of_any_name_is_sought_in_every_table(
    ending: str, tmp_path: Path
) -> None:
    recipe = RECIPE.replace('files = ["history*.json"]\n', "").replace('rows = "/episodes"\n', "")
    files = {"podcasts.json": EXPORT["podcasts.json"], f"history{ending}": b"at\tnumber\n1\t2\n"}
    assert told(read(recipe, files, tmp_path)) == [("no_rows", f"history{ending}")]


def test_the_same_is_told_where_the_recipe_lies_among_the_others(tmp_path: Path) -> None:
    recipe = own_recipe("e.toml", RECIPE.replace("/episodes", "/items"), ())
    with open_export(as_folder(EXPORT, tmp_path)) as export:
        first = readings(export, sources=with_outside((), [recipe]))[0]
        assert told(list(first.items())) == [("no_rows", "history.json")]
        assert told(list(first.items(first.export.total_bytes))) == []


def test_a_file_whose_rows_fit_under_another_name_is_told(tmp_path: Path) -> None:
    items = read(RECIPE.replace("history*.json", "plays*.json"), EXPORT, tmp_path)
    assert told(items) == [("no_file", "history.json")]


def test_a_stream_whose_files_are_not_there_is_told(tmp_path: Path) -> None:
    files = {"podcasts.json": EXPORT["podcasts.json"], "notes.txt": b"none"}
    assert told(read(RECIPE, files, tmp_path)) == [("no_file", "listens")]


def test_one_file_of_an_export_by_itself_is_told_nothing(tmp_path: Path) -> None:
    assert told(read(RECIPE, {"podcasts.json": EXPORT["podcasts.json"]}, tmp_path)) == []


def test_a_recipe_that_knows_no_file_names_those_that_fit(tmp_path: Path) -> None:
    wrong = RECIPE.replace("history*.json", "plays*.json").replace("podcasts.json", "shows.json")
    recipe = own_recipe("e.toml", wrong, ()).recipe
    with open_export(as_folder(EXPORT, tmp_path)) as export:
        found = [(each.code, each.where) for each in misnamed_files(export, recipe)]
    assert found == [("no_file", "podcasts.json"), ("no_file", "history.json")]
