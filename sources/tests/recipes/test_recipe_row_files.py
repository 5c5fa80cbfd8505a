"""Files that rows name: the pictures, videos, recordings and documents of a journal."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.source_item import Skipped, SourceItem, SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.recipe_file import parse_recipe
from pdpp_sources.recipes.recipe_reader import RecipeSource
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import readings, with_outside
from sources.tests.reading import checked
from sources.tests.specimens.files import Files, as_folder
from sources.tests.specimens.recipes import DAY_ONE


def read(files: Files, tmp_path: Path) -> list[SourceItem]:
    with open_export(as_folder(files, tmp_path)) as export:
        (reading,) = readings(export, sources=with_outside((), shipped_recipes()))
        return list(checked(reading.source, reading.items()))


def test_an_entry_has_its_files_and_what_no_entry_names_is_told(tmp_path: Path) -> None:
    files = {f"Export/{name}": body for name, body in DAY_ONE.items() if "ab13" not in name}
    items = read(files, tmp_path)
    records = {item.stream: item for item in items if isinstance(item, SourceRecord)}
    picture = records["photos"]
    assert picture.blobs[0].open().read() == DAY_ONE["photos/ab12.jpeg"]
    assert picture.data["parent_id"] == "0A3BFC9847BD4173881DE43749F23B58"
    assert (picture.data["filename"], picture.data["mime_type"]) == ("ab12.jpeg", "image/jpeg")
    assert [len(records[name].blobs) for name in ("videos", "recordings", "documents")] == [0, 1, 1]
    told = {item.where: item.code for item in items if isinstance(item, Skipped)}
    assert told["Export/photos/ff99.jpeg"] == "unmentioned_file"
    assert told["videos"] == "missing_attachment"


def test_a_name_that_leads_out_of_the_folder_finds_nothing(tmp_path: Path) -> None:
    body = DAY_ONE["Kitchen.json"].replace(b'"ab12"', b'"../secret"')
    items = read({"Kitchen.json": body, "photos/ab12.jpeg": b"x", "secret.jpeg": b"y"}, tmp_path)
    assert not any(item.blobs for item in items if isinstance(item, SourceRecord))


BESIDE = """
recipe = 1
key = "walks"
name = "Walks"
detail = "Where you walked."
how_to_export = "Ask."

[[stream]]
name = "walks"
label = "Walks"
detail = "Each walk."
has = ["at", "picture"]
key = ["at"]
file = "{picture}"

[stream.fields]
at = "at"
"""


def test_files_may_lie_beside_their_rows_and_a_row_without_one_is_told(tmp_path: Path) -> None:
    recipe = RecipeSource(parse_recipe(BESIDE, "walks.toml"))
    files = {"walks.csv": b"at,picture\nnoon,a\nnight,\n", "a.jpeg": b"x"}
    with open_export(as_folder(files, tmp_path)) as export:
        (reading,) = readings(export, sources=(recipe,))
        items = list(checked(recipe, reading.items()))
    assert [len(item.blobs) for item in items if isinstance(item, SourceRecord)] == [1, 0]
    assert [i.code for i in items if isinstance(i, Skipped)] == ["missing_attachment"]
