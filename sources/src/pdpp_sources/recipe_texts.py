"""The owner's recipes as they are written; what they say is read in the confined process only."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.texts import message
from pdpp_sources.common.errors import RecipeError

MOST_RECIPES = 200
MOST_BYTES = 256 * 1024


def recipe_texts(folder: Path | None, named: Path | None = None) -> dict[str, str | None]:
    """The texts of the recipes in a folder, by their paths, or of the one that was named alone.

    Out: None for one that cannot be read, is too long, or comes behind the most that are read.
    Raises: RecipeError, where the one that was named cannot be read or is too long.
    """
    if named is not None:
        text = _text_of(named)
        if text is None:
            raise RecipeError(
                "recipe_unreadable",
                message("The file of the recipe cannot be read."),
                message("Check the path of the recipe: it is a text file of at most 256 KiB."),
            )
        return {str(named): text}
    found = sorted(folder.glob("*.toml")) if folder and folder.is_dir() else []
    texts: dict[str, str | None] = {str(path): _text_of(path) for path in found[:MOST_RECIPES]}
    return texts | dict.fromkeys(map(str, found[MOST_RECIPES:]))


def _text_of(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
        return None if len(content) > MOST_BYTES else content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
