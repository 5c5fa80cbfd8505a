"""Files that rows name: the pictures, videos, recordings and documents of a journal."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.source_item import Skipped, SourceItem, SourceRecord
from pdpp_sources.common.export import open_export
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
