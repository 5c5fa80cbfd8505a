"""What every recipe that ships promises."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema_rs
import pytest

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.recipe_members import json_schema
from pdpp_sources.recipes.recipe_reader import RecipeSource
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import SOURCES, readings, with_outside
from sources.tests.reading import checked
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.recipes import RECIPE_SPECIMENS

every_recipe = pytest.mark.parametrize(
    "recipe", shipped_recipes(), ids=lambda each: each.connector_key
)
FOLDER = Path(__file__).resolve().parents[2] / "src/pdpp_sources/recipes/shipped"


def test_each_has_a_specimen_and_a_name_of_its_own() -> None:
    keys = [recipe.connector_key for recipe in shipped_recipes()]
    assert sorted(keys) == sorted(RECIPE_SPECIMENS)
    assert not set(keys) & {source.connector_key for source in SOURCES}
    assert sorted(f"{key}.toml" for key in keys) == sorted(p.name for p in FOLDER.iterdir())


@every_recipe
def test_it_fits_the_published_schema(recipe: RecipeSource) -> None:
    text = (FOLDER / f"{recipe.connector_key}.toml").read_text(encoding="utf-8")
    jsonschema_rs.validator_for(json_schema()).validate(tomllib.loads(text))


@every_recipe
def test_it_alone_reads_its_export_and_every_stream_has_a_record(
    recipe: RecipeSource, tmp_path: Path
) -> None:
    path = as_folder(RECIPE_SPECIMENS[recipe.connector_key], tmp_path)
    with open_export(path) as export:
        (reading,) = readings(export, sources=with_outside((), shipped_recipes()))
        assert reading.source is recipe
        knowing = [each.connector_key for each in shipped_recipes() if each.recognize(export)]
        assert knowing == [recipe.connector_key]
        items = list(checked(recipe, reading.items()))
    seen = {item.stream for item in items if isinstance(item, SourceRecord)}
    assert seen == {stream["name"] for stream in recipe.declaration["streams"]}


@every_recipe
def test_each_field_is_filled_somewhere(recipe: RecipeSource, tmp_path: Path) -> None:
    path = as_folder(RECIPE_SPECIMENS[recipe.connector_key], tmp_path)
    with open_export(path) as export:
        found = [item for item in recipe.read(export) if isinstance(item, SourceRecord)]
    filled = {(i.stream, n) for i in found for n, v in i.data.items() if v is not None}
    declared = {(s.name, f.name) for s in recipe.recipe.streams for f in s.fields}
    assert declared <= filled, sorted(declared - filled)
