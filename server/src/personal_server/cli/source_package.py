"""`pdpp source new`: the beginning of a source of one's own, a recipe or a package with a reader.

Rule: what is written works as it is: the recipe reads the specimen, the tests of the package pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import plain, words
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess
from personal_server.cli.known_sources import known_sources

_KEY = r"[a-z][a-z0-9_]{1,40}"  # as recipes and declarations have it
SPECIMEN = 'Title,Date\n"Dark: Season 1: Secrets",2024-02-01\nHeat,2024-02-03\nHeat,somewhen\n'

source_app = cyclopts.App(
    name="source", help="Begin a source of your own, for exports that nothing reads yet."
)


@source_app.command
def new(
    name: str,
    *,
    recipe: Annotated[bool, Parameter(negative="")] = False,
    folder: Path | None = None,
) -> None:
    """Write the beginning of a source: a package with a reader, a specimen and tests.

    Parameters
    ----------
    name
        The short name of the source: small letters, digits and _.
    recipe
        Write a recipe and a specimen instead: for JSON or CSV, without code.
    folder
        Where to write it. Default: a new folder, called after the source.
    """
    if not re.fullmatch(_KEY, name):
        raise CommandError(
            "usage",
            "The name of a source is small letters, digits and _; it begins with a letter.",
            "Choose a name such as `rides` or `city_bikes`.",
        )
    if _is_taken(name):
        raise CommandError(
            "usage",
            f"A source is called {name} already.",
            f"Choose another name; `pdpp sources {name}` shows what that one reads.",
        )
    target = folder or Path(name if recipe else f"{name.replace('_', '-')}-reader")
    texts = _recipe(name) if recipe else _package(name)
    present = [each for each in texts if (target / each).exists()]
    if present:
        raise CommandError(
            "usage",
            f"{target} already has a file {present[0]}.",
            "Choose another folder with --folder. Nothing was written.",
        )
    for path, text in texts.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_text(text, encoding="utf-8")
    words().print(plain(f"Wrote {target}: {', '.join(texts)}"), soft_wrap=True)
    words().print(plain(f"Go on with {target / 'README.md'}"), soft_wrap=True)


def _is_taken(name: str) -> bool:
    """Whether a source has that name: of the program, of its recipes, or of a package."""
    with ReaderProcess(CostlyPlaces()) as reader:
        return name in {source.connector_key for source in known_sources(reader).sources}


def _package(name: str) -> Mapping[str, str]:
    """The files of a package with a reader, by their paths."""
    module = f"{name}_reader"
    reader = "".join(part.capitalize() for part in name.split("_")) + "Source"
    template = (files("pdpp_sources") / "source_template.py").read_text("utf-8")
    text = template.replace("ViewingsSource", reader).replace('"viewings"', f'"{name}"')
    return {
        f"src/{module}.py": text.replace(" Copy me.", ""),
        "tests/specimen/ViewingActivity.csv": SPECIMEN,
        f"tests/test_{name}.py": _TEST.format(name=name, module=module, reader=reader),
        "pyproject.toml": _PROJECT.format(
            package=name.replace("_", "-"), name=name, module=module, reader=reader
        ),
        "README.md": _PACKAGE_README.format(name=name, module=module),
    }


def _recipe(name: str) -> Mapping[str, str]:
    """A recipe and what it reads, by their paths."""
    label = name.replace("_", " ").capitalize()
    return {
        f"{name}.toml": _RECIPE.format(name=name, label=label),
        "specimen.json": _RECIPE_SPECIMEN,
        "README.md": _RECIPE_README.format(name=name),
    }


_TEST = '''"""The contract of sources, run over the reader: `python -m pytest`."""

from pathlib import Path

from {module} import {reader}
from pdpp_sources.source_contract import SourceContract


class TestContract(SourceContract):
    source = {reader}()
    specimen = Path(__file__).parent / "specimen"
'''
_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "{package}-reader"
version = "0.1.0"
description = "A reader for the personal server."
requires-python = ">=3.11"
dependencies = ["pdpp-sources"]

[project.optional-dependencies]
test = ["pytest"]

[project.entry-points."pdpp.sources"]
{name} = "{module}:{reader}"

[tool.hatch.build.targets.wheel]
only-include = ["src/{module}.py"]
sources = ["src"]

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
"""
_PACKAGE_README = """# {name}

It reads a list of what was watched. Make it read your export:

1. Replace `tests/specimen/` by a small export of yours, invented but shaped as the real one, with
   something broken in it and a record of every stream.
2. In `src/{module}.py` say what the export holds (`StreamForm`), how its files are recognized, and
   what each row becomes.
3. Run the contract until it passes: `python -m pytest`. It needs `pdpp-sources` and `pytest` and
   nothing else.
4. Install it where the server is installed, `python -m pip install .`; then `pdpp sources {name}`
   shows it, and `pdpp import EXPORT --dry-run` reads by it and stores nothing.

`python -m pydoc pdpp_sources.common.declaration` prints how to call what `src/{module}.py` imports
from there, and so for each other module that it imports. What a reader must hold to is described in
docs/sources.md of the server, "Add a source" and "Readers in other packages".
"""
_RECIPE = """# The structure: a page of the service, or an export that somebody published.
recipe = 1
key = "{name}"
name = "{label}"
detail = "What is in it, for the page of consent."
how_to_export = "Where one asks for the export."
# zone = "UTC"  # of times that name none; else the owner's

[[stream]]
name = "entries"
label = "Your entries"
detail = "Each entry: when it was, its title and its length."
files = ["*.json"]        # names of the files, * for anything
rows = "/entries"         # where the list stands in the JSON; leave it out for CSV
has = ["no", "at"]        # members that tell these rows from those of other files
key = ["number"]          # the fields that name an entry: importing again changes nothing
time = "at"
title = "title"

[stream.fields]
number = {{ from = "no", is = "string", about = "The service's number" }}
at = {{ is = "instant", about = "When it was" }}
title = {{ from = "/about/title", about = "Its title" }}
length = {{ from = "km", is = "number", unit = "km", about = "How long it was" }}

# Lists in these rows are streams of their own: `within = "entries"`, `rows = "/parts"`, which
# begins at the row around. Money: {{ is = "amount", unit_field = "currency" }} and a field
# `currency` that is = "currency". docs/recipes.md has an example of both.
"""
_RECIPE_SPECIMEN = """{"entries": [
  {"no": 1, "at": "2026-01-05T08:00:00Z", "about": {"title": "Lake"}, "km": 12.5},
  {"no": 2, "at": "2026-01-06T09:30:00Z", "about": {"title": "Hill"}, "km": 7}
]}
"""
_RECIPE_README = """# {name}

1. Put a piece of your export in the place of `specimen.json`.
2. Change `{name}.toml` until this shows the right values; it stores nothing:

       pdpp import specimen.json --recipe {name}.toml --dry-run

3. Import the export: `pdpp import EXPORT --recipe {name}.toml`, or copy `{name}.toml` into the
   folder `recipes` of the data directory, so that every import knows it.

docs/recipes.md of the server has every word of a recipe, and what each fault means.
"""
