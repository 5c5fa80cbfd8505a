"""`pdpp source new`: what it writes works as it is."""

from __future__ import annotations

import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import cyclopts
import pytest

from pdpp_mcp_server.commands.exits import run_app
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.recipe_shelf import own_recipe
from pdpp_sources.source_contract import SourceContract
from personal_server.cli.source_package import source_app


def run(*arguments: str | Path) -> int:
    app = cyclopts.App()
    app.command(source_app)
    return run_app(app, ["source", "new", *map(str, arguments)])


def test_the_package_passes_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "package"
    assert run("city_bikes", "--folder", folder) == 0
    monkeypatch.syspath_prepend(folder / "src")  # pyright: ignore[reportUnknownMemberType]
    written: Any = run_path(str(folder / "tests" / "test_city_bikes.py"))["TestContract"]
    del sys.modules["city_bikes_reader"]
    assert issubclass(written, SourceContract)
    assert written.source.connector_key == "city_bikes"
    checks = [name for name in dir(written) if name.startswith("test_")]
    for check in checks:
        getattr(written(), check)()
    assert len(checks) >= 7


def test_the_recipe_reads_its_specimen(tmp_path: Path) -> None:
    folder = tmp_path / "recipe"
    assert run("rides", "--recipe", "--folder", folder) == 0
    recipe = folder / "rides.toml"
    source = own_recipe(str(recipe), recipe.read_text(), ())
    with open_export(folder / "specimen.json") as export:
        records: list[Any] = list(source.read(export))
    assert [record.data["title"] for record in records] == ["Lake", "Hill"]


@pytest.mark.parametrize("name", ["Rides", "my rides", "../rides", "1st"])
def test_a_name_that_no_source_may_have_is_refused(name: str, tmp_path: Path) -> None:
    assert run(name, "--folder", tmp_path / "x") == 64
    assert not (tmp_path / "x").exists()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert run("rides", "--folder", tmp_path) == 64
    assert [each.name for each in tmp_path.iterdir()] == ["README.md"]


@pytest.mark.parametrize("name", ["mail", "table", "spotify"])
@pytest.mark.parametrize("form", [(), ("--recipe",)])
def test_a_name_that_a_source_has_is_refused(
    name: str, form: tuple[str, ...], tmp_path: Path
) -> None:
    assert run(name, *form, "--folder", tmp_path / "x") == 64
    assert not (tmp_path / "x").exists()
