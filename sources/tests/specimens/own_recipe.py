"""A recipe of an owner, an export that it fits, and how it is read by it."""

from __future__ import annotations

import json
from pathlib import Path

from pdpp_kernel.source_item import Skipped, SourceItem
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes.recipe_readings import reading_by_recipe
from sources.tests.specimens.files import Files, as_folder

RECIPE = """
recipe = 1
key = "earshot"
name = "Earshot"
detail = "What you heard."
how_to_export = "Ask."

[[stream]]
name = "podcasts"
label = "Podcasts"
detail = "Each podcast."
files = ["podcasts.json"]
has = ["feed"]
key = ["feed"]
fields = { feed = { is = "string" } }

[[stream]]
name = "listens"
label = "Episodes"
detail = "Each episode."
files = ["history*.json"]
rows = "/episodes"
has = ["at", "no"]
key = ["number"]
time = "heard"

[stream.fields]
number = { from = "no", is = "string" }
heard = { from = "at", is = "instant", format = "milliseconds" }
length = { from = "seconds", is = "duration" }
price = { is = "amount", unit = "EUR", decimal = "," }
"""
EPISODES = [
    {"no": str(n), "at": 1700000000123 + n, "seconds": 60, "price": "3,45"} for n in range(3)
]
EXPORT = {
    "podcasts.json": json.dumps([{"feed": "a"}]).encode(),
    "history.json": json.dumps({"episodes": EPISODES}).encode(),
}


def read(recipe: str, files: Files, folder: Path) -> list[SourceItem]:
    with open_export(as_folder(files, folder)) as export:
        return list(reading_by_recipe(export, {"e.toml": recipe}, "e.toml", ()).items())


def told(items: list[SourceItem]) -> list[tuple[str, str]]:
    return [(item.code, item.where) for item in items if isinstance(item, Skipped)]
