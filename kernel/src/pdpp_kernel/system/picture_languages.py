"""Whether the words of pictures are read on this machine, and in which languages (Tesseract)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

PICTURES = ("image/png", "image/jpeg", "image/tiff", "image/webp", "image/bmp")
_FOLDERS = (
    *(f"/usr/share/tesseract-ocr/{version}/tessdata" for version in ("5", "4.00")),
    *("/usr/share/tessdata", "/usr/local/share/tessdata", "/opt/homebrew/share/tessdata"),
)
_NO_LANGUAGES = frozenset({"osd", "equ"})
_MOST_LANGUAGES = 4  # each takes its share of time and memory


@lru_cache(maxsize=1)
def language_folder() -> Path | None:
    """Where the languages lie, None where pictures are not read here."""
    if find_spec("tesserocr") is None or find_spec("PIL") is None:
        return None
    return next((folder for folder in map(Path, _FOLDERS) if languages_in(folder)), None)


def reads(kind: str) -> bool:
    """Whether the words of pictures of a kind are read on this machine."""
    return kind in PICTURES and language_folder() is not None


def languages_in(folder: Path) -> list[str]:
    """English first, then those that are installed beside it."""
    names = {path.stem for path in _listed(folder)} - _NO_LANGUAGES
    return sorted(names, key=lambda name: (name != "eng", name))[:_MOST_LANGUAGES]


def _listed(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        yield from folder.glob("*.traineddata")
