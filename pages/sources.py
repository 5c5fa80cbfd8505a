"""The generated page of sources: what can be read, how to get it, what it becomes."""

from __future__ import annotations

import json

from pdpp_kernel.source_item import Data
from pdpp_sources.recipes.recipe_members import json_schema
from pdpp_sources.recipes.recipe_shelf import shipped_recipes
from pdpp_sources.registry import SOURCES

HEAD = """# What can be imported

Made by `make docs` from the sources' declarations. [sources.md](sources.md) says how to import.

| key | source | streams |
|---|---|---|
"""


def sources_page() -> str:
    """A table of all sources, then each with its streams and fields."""
    sources = (*SOURCES, *shipped_recipes())
    rows = "".join(_row(each.connector_key, each.declaration) for each in sources)
    parts = (_part(each.connector_key, each.declaration, each.how_to_export) for each in sources)
    return HEAD + rows + "".join(parts)


def recipe_schema() -> str:
    """The JSON Schema of recipes, for editors."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


def _row(key: str, declared: Data) -> str:
    names = ", ".join(f"`{stream['name']}`" for stream in declared["streams"])
    return f"| `{key}` | {declared['display']['name']} | {names or 'made from your columns'} |\n"


def _part(key: str, declared: Data, how_to_export: str) -> str:
    display = declared["display"]
    head = f"\n## {display['name']} (`{key}`)\n{display['detail']}\n\n"
    return (
        head + f"**How to get it.** {how_to_export}\n" + "".join(map(_stream, declared["streams"]))
    )


def _stream(stream: Data) -> str:
    fields = "".join(
        f"| `{name}` | {schema.get('description', '')} |\n"
        for name, schema in stream["schema"]["properties"].items()
    )
    words = stream["display"]
    title = f"\n### `{stream['name']}`: {words['label']}\n{words['detail']}\n\n"
    return f"{title}| field | what it is |\n|---|---|\n{fields}"
