"""The pages of sources and uploads know the recipes of the server's own data directory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from personal_server.app.uploads import RecognizedFiles, importable_exports
from personal_server.collecting.import_folders import ImportFolders
from personal_server.settings import Settings

PAGE = Path(__file__).resolve().parents[3] / "docs/recipes.md"


def block(language: str) -> str:
    page = PAGE.read_text(encoding="utf-8")
    text, *_ = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return text


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    recipes = tmp_path / "data" / "recipes"
    recipes.mkdir(parents=True)
    (recipes / "rides.toml").write_text(block("toml"))
    return Settings(data_dir=tmp_path / "data")


def test_what_can_be_imported_has_the_owners_recipes(settings: Settings) -> None:
    assert "rides" in {each["connector_key"] for each in importable_exports(settings)}


def test_a_file_that_only_a_recipe_reads_is_called_as_the_recipe_calls_it(
    settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "exports"
    folder.mkdir()
    (folder / "rides.json").write_text(block("json"))
    listing = ImportFolders((folder,)).listing(0)
    assert RecognizedFiles(settings)(listing) == {"rides.json": "Rides"}
