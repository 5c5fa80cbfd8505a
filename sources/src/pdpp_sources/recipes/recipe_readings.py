"""Which recipe reads an export: the one that was named, or one of several that know it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from pdpp_kernel.texts import message
from pdpp_sources.common.errors import ExportNotRecognized, RecipeError
from pdpp_sources.common.export import Export
from pdpp_sources.common.source import SourceReader
from pdpp_sources.recipes.recipe_reader import RecipeSource
from pdpp_sources.recipes.recipe_shelf import own_recipe
from pdpp_sources.registry import Reading
from pdpp_sources.tables.reader import TableSource


def reading_by_recipe(
    export: Export,
    texts: Mapping[str, str | None],
    path: str,
    sources: Sequence[SourceReader],
    key: str | None = None,
) -> Reading:
    """What the recipe that was named reads of an export; `key` is of a source that was named too,
    which has to be its own.

    Raises: RecipeError; ExportNotRecognized, where it knows none of the files.
    """
    source = own_recipe(path, texts[path], (each.connector_key for each in sources))
    if key not in (None, source.connector_key):
        sentence = message("A source and a recipe were named; only one of them can read.")
        raise RecipeError("recipe_not_alone", sentence, message("Leave out --as or --recipe."))
    claim = source.recognize(export)
    if claim is None:
        patterns = sorted({name for each in source.recipe.streams for name in each.files})
        sentence = message(
            "The recipe %(name)s knows no file of this export.", name=Path(path).name
        )
        called = message("Check `has` in the recipe against the first row of the file.")
        if patterns:
            called = message(
                "Check `files` (%(names)s) and `has` in the recipe against the name and the first "
                "row of the file.",
                names=", ".join(patterns[:5]),
            )
        raise ExportNotRecognized(sentence, called)
    why = f"{claim.why} as {Path(path).name} says"
    return Reading(source, export.only(claim.members), why, claim.missed)


def in_zone_of(export: Export, source: SourceReader, recipes: Sequence[RecipeSource]) -> Export:
    """An export that is read as a table, its times in the zone that a recipe says of its files."""
    if isinstance(source, TableSource):
        for each in recipes:
            fields = (field for stream in each.recipe.streams for field in stream.fields)
            zones = {field.zone for field in fields if field.kind == "instant"}
            zone = zones.pop() if len(zones) == 1 else None
            if zone and each.recognize(export):
                return dataclasses.replace(export, zone=ZoneInfo(zone))
    return export


def told_apart(readings: Sequence[Reading], recipes: Sequence[RecipeSource]) -> tuple[Reading, ...]:
    """The readings; where further recipes know the files of one, its reason says which."""
    return tuple(
        _among(reading, recipes) if isinstance(reading.source, RecipeSource) else reading
        for reading in readings
    )


def _among(reading: Reading, recipes: Sequence[RecipeSource]) -> Reading:
    others = [
        each.connector_key
        for each in recipes
        if each.connector_key != reading.source.connector_key and each.recognize(reading.export)
    ]
    if not others:
        return reading
    keys = " or ".join(f"--as {key}" for key in others)
    return replace(reading, why=f"{reading.why}; another recipe knows them too: {keys}")
