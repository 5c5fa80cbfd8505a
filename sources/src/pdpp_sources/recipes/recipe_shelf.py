"""Which recipes there are: those that ship with the product, and those of the owner.

Rule: a recipe takes the name of no reader in code. One of the owner's stands in the place of a
shipped one of the same name; the others are asked by name. A recipe that cannot be used costs no
other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from pdpp_kernel.source_declaration import OWN_FILE_PREFIX
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import RecipeError
from pdpp_sources.recipes.recipe_file import parse_recipe
from pdpp_sources.recipes.recipe_reader import RecipeSource

SUFFIX = ".toml"


@cache
def shipped_recipes() -> tuple[RecipeSource, ...]:
    """Those of this package, by name."""
    folder = files("pdpp_sources.recipes") / "shipped"
    found = sorted((each.name, each.read_text("utf-8")) for each in folder.iterdir())
    return tuple(RecipeSource(parse_recipe(text, name)) for name, text in found)


def own_recipe(path: str, text: str | None, taken: Iterable[str]) -> RecipeSource:
    """One of the owner's, from its text; without one it cannot be read. Raises: RecipeError."""
    name = Path(path).name
    if text is None:
        sentence = message(
            "The recipe %(name)s cannot be used: it is unreadable, too long, or one too many.",
            name=name,
        )
        limits = message("docs/recipes.md says how long a recipe may be, and how many are read.")
        raise RecipeError("recipe_unreadable", sentence, limits)
    source = RecipeSource(parse_recipe(text, name), path)
    key = source.connector_key
    if key in set(taken) or key.startswith(OWN_FILE_PREFIX):
        sentence = message(
            "The recipe %(name)s cannot be used: another source is called `%(key)s`.",
            name=name,
            key=key,
        )
        raise RecipeError("recipe_key_taken", sentence, message("Change the key of the recipe."))
    return source


def recipes_with(
    texts: Mapping[str, str | None], taken: Iterable[str]
) -> tuple[tuple[RecipeSource, ...], list[tuple[str, RecipeError]]]:
    """The owner's recipes before the shipped ones, and those that cannot be used with why.

    Shapes: `texts` by the paths of their files; `taken` are the names of readers in code.
    """
    own: dict[str, RecipeSource] = {}
    unusable: list[tuple[str, RecipeError]] = []
    names = frozenset(taken)
    for path, text in texts.items():
        try:
            source = own_recipe(path, text, names | own.keys())
            own[source.connector_key] = source
        except RecipeError as error:
            unusable.append((path, error))
    shipped = (each for each in shipped_recipes() if each.connector_key not in own)
    return (*own.values(), *shipped), unusable
