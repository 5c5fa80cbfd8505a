"""Characters that nobody sees: what steers a display, and letters that are drawn as nothing.  Pure.

Rule: nothing else in the server says which they are; tool results have a list of their own
(`pdpp_mcp_server/safe_text.py`), since they keep what joins letters.
"""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Fillers of Hangul, vowels of Khmer that are not written, a blank of Braille, and a joiner of
# graphemes: letters, marks and signs to Unicode.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def is_hidden(character: str) -> bool:
    """Whether a character shows nothing and is no white space that separates words."""
    return character in _BLANK or unicodedata.category(character) in _HIDDEN_CATEGORIES


def shows_nothing(text: str) -> bool:
    """Whether nobody would see anything of a text."""
    return all(character.isspace() or is_hidden(character) for character in text)


def shows_all(text: str) -> bool:
    """Whether a text, as the name of a file, has no character that nobody sees."""
    return not any(map(is_hidden, text))


def shown(text: str, limit: int) -> str:
    """Foreign text without control, format and bidirectional characters, cut at `limit`."""
    visible = "".join(
        " " if character.isspace() else character
        for character in text
        if character.isspace() or not is_hidden(character)
    )
    words = " ".join(visible.split())
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"
