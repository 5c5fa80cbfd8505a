"""Recipes that lie in an export: found and told, so that its owner may choose one, never used.

Whoever made the export may have written them, and a recipe says what records mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pdpp_sources.common.errors import BadRecord, MemberDamaged, RecipeError
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.reader_messages import RecipeInside
from pdpp_sources.recipe_texts import MOST_BYTES
from pdpp_sources.recipes.recipe_shelf import SUFFIX, own_recipe

MOST_INSIDE = 5
_MOST_LOOKED_AT = 50
_MOST_FILES = 20


def recipes_inside(export: Export, taken: Iterable[str]) -> list[RecipeInside]:
    """The recipes that describe files beside them; `taken` are the keys of readers in code."""
    keys = frozenset(taken)
    candidates = [each for each in export.members if each.suffix == SUFFIX]
    found = (each for member in candidates[:_MOST_LOOKED_AT] for each in _in(member, export, keys))
    return [each for each, _ in zip(found, range(MOST_INSIDE), strict=False)]


def _in(member: ExportMember, export: Export, taken: frozenset[str]) -> Iterator[RecipeInside]:
    if member.size_bytes > MOST_BYTES:
        return
    try:
        with member.open() as stream:
            text = stream.read(MOST_BYTES).decode("utf-8-sig")
        source = own_recipe(member.name, text, taken)
        claim = source.recognize(export)
    except (BadRecord, MemberDamaged, RecipeError, UnicodeDecodeError):
        return
    if claim:
        streams = source.recipe.streams
        yield RecipeInside(
            member.name,
            text,
            source.recipe.name,
            [each.label for each in streams],
            [each.detail for each in streams],
            [each.name for each in claim.members[:_MOST_FILES]],
        )
