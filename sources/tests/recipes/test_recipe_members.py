"""What docs/recipes.md tells people who write a recipe."""

from __future__ import annotations

import re
from pathlib import Path

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.recipe_file import parse_recipe
from pdpp_sources.recipes.recipe_members import FIELD, RECIPE, RELATION, STREAM
from pdpp_sources.recipes.recipe_reader import RecipeSource
from sources.tests.reading import checked
from sources.tests.specimens.files import as_folder

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")


def block(language: str, number: int = 0) -> str:
    texts = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return texts[number]


def test_its_example_reads_its_export(tmp_path: Path) -> None:
    text = block("toml")
    assert len(text.splitlines()) < 20
    recipe = RecipeSource(parse_recipe(text, "rides.toml"))
    with open_export(as_folder({"rides.json": block("json").encode()}, tmp_path)) as export:
        claimed = recipe.recognize(export)
        assert claimed
        items = list(checked(recipe, recipe.read(export.only(claimed.members))))
    assert [item.data for item in items if isinstance(item, SourceRecord)] == [
        {
            "id": number,
            "number": number,
            "began": began,
            "route": route,
            "distance": distance,
        }
        for number, began, route, distance in (
            ("7", "2024-07-01T08:00:00Z", "Lake", 12.5),
            ("8", "2024-07-02T09:30:00Z", "Hill", 7),
        )
    ]


def test_its_example_of_rows_within_rows_reads_its_export(tmp_path: Path) -> None:
    head, _, _ = block("toml").partition("[[stream]]")
    recipe = RecipeSource(parse_recipe(head + block("toml", 1), "orders.toml"))
    with open_export(as_folder({"orders.json": block("json", 1).encode()}, tmp_path)) as export:
        claimed = recipe.recognize(export)
        assert claimed
        items = list(checked(recipe, recipe.read(export.only(claimed.members))))
    order, paid = (item.data for item in items if isinstance(item, SourceRecord))
    assert order == {"id": "A1", "number": "A1", "at": "2024-07-01T08:00:00Z"}
    del paid["id"]
    assert paid == {"parent_id": "A1", "how": "card", "amount": 6.25, "currency": "EUR"}


def test_its_tables_name_every_member_and_what_it_means() -> None:
    _, *parts = PAGE.split("\n### ")
    for part, members in zip(parts, (RECIPE, STREAM, FIELD, RELATION), strict=True):
        rows = re.findall(r"^\| `(\w+)`(| \(required\)) \| [^|]+ \| (.*) \|$", part, re.MULTILINE)
        told = rows[: len(members)]
        assert [name for name, _, _ in told] == [member.name for member in members]
        for (_, required, about), member in zip(told, members, strict=True):
            assert about.startswith(member.about)
            assert bool(required) == member.required
            assert all(f"`{word}`" in about for word in member.words)


def test_its_table_of_faults_names_every_code() -> None:
    told = set(re.findall(r"^\| `(recipe_\w+)` \|", PAGE, re.MULTILINE))
    room = (ROOT / "sources/src/pdpp_sources").rglob("recipe_*.py")
    raised = {
        code for path in room for code in re.findall(r'"(recipe_\w+)"', path.read_text("utf-8"))
    }
    assert told == raised
