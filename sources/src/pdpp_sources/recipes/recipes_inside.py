"""Recipes that lie in an export: found and told, so that its owner may choose one, never used.

Whoever made the export may have written them, or somebody who sent its owner a file; a recipe says
what records mean.

Rule: one that is costly to judge costs itself, and ends the search for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pdpp_sources.common.errors import BadRecord, MemberDamaged, RecipeError
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.reader_messages import RecipeInside
from pdpp_sources.recipe_texts import MOST_BYTES
from pdpp_sources.recipes.recipe_shelf import SUFFIX, own_recipe, shipped_recipes

MOST_INSIDE = 5
_MOST_LOOKED_AT = 50
_MOST_FILES = 20


def recipes_inside(export: Export, taken: Iterable[str]) -> list[RecipeInside]:
    """The recipes that describe files beside them; `taken` are the keys of readers in code.

    None of them stands in the place of a recipe that ships with the product.
    """
    keys = frozenset(taken).union(each.connector_key for each in shipped_recipes())
    candidates = [each for each in export.members if each.suffix == SUFFIX]
    found: list[RecipeInside] = []
    for member in candidates[:_MOST_LOOKED_AT]:
        try:
            with BOOKMARK.judging(member):
                found += _in(member, export, keys)
        except BadRecord:
            break
        if len(found) == MOST_INSIDE:
            break
    return found


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
