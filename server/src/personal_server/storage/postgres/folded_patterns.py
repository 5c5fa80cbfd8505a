"""Patterns that match every text that is folded to the same (`storage.folding.fold`)."""

from __future__ import annotations

from functools import lru_cache

# All cased letters stand below.
_CASED_BELOW = 0x20000


@lru_cache(maxsize=1)
def _upper() -> dict[str, list[str]]:
    """Code points by the one that they are folded to (`storage.folding.fold`)."""
    by_lower: dict[str, list[str]] = {}
    for sign in map(chr, range(_CASED_BELOW)):
        low = sign.lower()
        if low != sign and len(low) == 1:
            by_lower.setdefault(low, []).append(sign)
    return by_lower


def folded_pattern(sought: str, *, starts: bool = False, ends: bool = False) -> str:
    """What matches every text that is folded to the same."""
    upper, parts = _upper(), list[str]()
    for entry in sought:
        low = entry.lower()
        low = low if len(low) == 1 else entry
        alike = [low, *upper.get(low, ())]
        parts.append(f"[{''.join(map(_escaped, alike))}]" if len(alike) > 1 else _escaped(low))
    return f"{'^' if starts else ''}{''.join(parts)}{'$' if ends else ''}"


def _escaped(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    return f"\\U{ord(character) or 0xFFFD:08x}"
