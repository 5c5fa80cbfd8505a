"""The owner's recipes as they are written; what they say is read in the confined process only."""

from __future__ import annotations

from pathlib import Path

from pdpp_sources.common.errors import RecipeError

MOST_RECIPES = 200
MOST_BYTES = 256 * 1024


def recipe_texts(folder: Path | None, named: Path | None = None) -> dict[str, str]:
    """The texts of the recipes in a folder, and of one that was named, by their paths.

    Raises: RecipeError, where the one that was named cannot be read.
    """
    found = sorted(folder.glob("*.toml"))[:MOST_RECIPES] if folder and folder.is_dir() else []
    texts = {str(path): text for path in found if (text := _text_of(path)) is not None}
    if named is not None:
        text = _text_of(named)
        if text is None:
            raise RecipeError(
                "recipe_unreadable",
                "The file of the recipe cannot be read.",
                "Check the path of the recipe: it is a text file that ends in .toml.",
            )
        texts[str(named)] = text
    return texts


def _text_of(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return stream.read(MOST_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None
