"""What every recipe that ships promises."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema_rs
import pytest
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, SourceItem, SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.recipe_members import json_schema
from pdpp_sources.recipes.recipe_reader import RecipeSource
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import SOURCES, readings, with_outside
from sources.tests.reading import checked
from sources.tests.specimens.files import Files, as_folder, as_zip
from sources.tests.specimens.recipes import RECIPE_SPECIMENS

every_recipe = pytest.mark.parametrize(
    "recipe", shipped_recipes(), ids=lambda each: each.connector_key
)
NAMES = {
    *("artist", "album", "audiobook", "author", "company", "publisher", "receiver", "receivers"),
    *("sender", "show", "subreddit", "username"),
}
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


@every_recipe
def test_whom_and_what_people_ask_by_name_is_searched_in_any_case(recipe: RecipeSource) -> None:
    for stream in recipe.declaration["streams"]:
        fields = stream["schema"]["properties"]
        named = NAMES & {
            each for each in fields if not fields[each].get("description", "").startswith("Id")
        }
        assert named <= {*stream["query"]["search"]["lexical_fields"]}
        assert all(fields[each].get("x_pdpp_caseless") for each in named)


def read(recipe: RecipeSource, path: Path, start: int = 0) -> list[SourceItem]:
    with open_export(path) as export:
        claimed = recipe.recognize(export)
        mine = export.only(claimed.members) if claimed else export.only([])
        return [_told(item) for item in checked(recipe, recipe.read(mine, start))]


def _told(item: SourceItem) -> SourceItem:
    """An item but for how its bytes are opened; what they are says its data."""
    return replace(item, blobs=()) if isinstance(item, SourceRecord) else item


@every_recipe
def test_a_zip_a_second_reading_and_one_from_a_place_say_the_same(
    recipe: RecipeSource, tmp_path: Path
) -> None:
    files = RECIPE_SPECIMENS[recipe.connector_key]
    path = as_zip(files, tmp_path / "export.zip")
    whole = read(recipe, path)
    assert whole == read(recipe, path)
    positions = [item.position for item in whole]
    assert positions == sorted(positions)
    for start in {positions[0], positions[len(positions) // 2], positions[-1]}:
        assert read(recipe, path, start) == [item for item in whole if item.position >= start]
    folder = read(recipe, as_folder(files, tmp_path / "folder"))
    assert [i for i in folder if isinstance(i, SourceRecord)] == [
        i for i in whole if isinstance(i, SourceRecord)
    ]


@every_recipe
@pytest.mark.parametrize("kept", [0.9, 0.5])
def test_a_file_that_is_cut_short_or_comes_twice_makes_no_other_values(
    recipe: RecipeSource, kept: float, tmp_path: Path
) -> None:
    files = RECIPE_SPECIMENS[recipe.connector_key]
    cut: Files = {name: body[: int(len(body) * kept)] for name, body in files.items()}
    read(recipe, as_folder(cut, tmp_path / "cut"))
    twice = {f"{copy}/{name}": body for copy in "ab" for name, body in files.items()}
    known: dict[tuple[str, str], object] = {}
    for item in read(recipe, as_folder(twice, tmp_path / "twice")):
        if isinstance(item, SourceRecord):
            assert known.setdefault((item.stream, item.data["id"]), item.data) == item.data


def records_of(key: str, files: Files, folder: Path) -> list[tuple[str, Data]]:
    recipe = next(r for r in shipped_recipes() if r.connector_key == key)
    found = read(recipe, as_folder(files, folder))
    return [(item.stream, item.data) for item in found if isinstance(item, SourceRecord)]


def test_videos_that_one_posted_are_not_among_those_one_watched(tmp_path: Path) -> None:
    found = records_of("tiktok", RECIPE_SPECIMENS["tiktok"], tmp_path)
    assert [(s, d["likes"]) for s, d in found if "likes" in d] == [("videos", 3), ("posts", 4)]
    assert [s for s, _ in found].count("watched_videos") == 2


def test_headers_of_messages_do_not_stand_for_their_texts(tmp_path: Path) -> None:
    name = "data/direct-messages.js"
    body = RECIPE_SPECIMENS["twitter"][name]
    headers = body.replace(b'"text"', b'"other"')
    files = {"data/direct-message-group-headers.js": headers, "data/direct-messages-group.js": body}
    found = records_of("twitter", files, tmp_path)
    assert [d["text"] for s, d in found if s == "direct_messages"] == ["The stone one."]


def test_films_that_were_taken_out_of_the_diary_are_not_in_it(tmp_path: Path) -> None:
    diary = RECIPE_SPECIMENS["letterboxd"]["diary.csv"]
    gone = {f"{n}/diary.csv": diary.replace(b"boxd.", b"gone.") for n in ("deleted", "orphaned")}
    found = records_of("letterboxd", {"diary.csv": diary, **gone}, tmp_path)
    assert [d["uri"] for _, d in found] == ["https://boxd.example/a", "https://boxd.example/b"]


def test_what_was_sent_since_is_the_same_article(tmp_path: Path) -> None:
    ((name, body),) = RECIPE_SPECIMENS["amazon"].items()
    before = body.replace(b"2025-07-24T05:24:15.525Z", b"Not Available")
    known = records_of("amazon", {name: before}, tmp_path / "before")
    again = records_of("amazon", {name: body}, tmp_path / "after")
    assert [d["id"] for _, d in known] == [d["id"] for _, d in again]
