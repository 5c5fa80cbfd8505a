"""Letters as they are searched: folded, and set apart where a script puts no spaces."""

from __future__ import annotations

import unicodedata

# Prefixes of Unicode character names: Han, Hiragana, Katakana, Thai, Lao, Khmer, Myanmar.
_UNSPACED_SCRIPTS = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC",
    "HIRAGANA",
    "KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)


def spaced(text: str) -> str:
    """The tokens of a text with white space between them: what an index is fed with."""
    if text.isascii():
        return text.encode().translate(_ASCII).decode()
    return text.translate(FOLDED_LETTERS)


class _Folding(dict[int, str]):
    """Code point → its folded letters and digits, a space where it separates; made on demand."""

    def __missing__(self, code_point: int) -> str:
        folded = _fold(chr(code_point))
        self[code_point] = folded
        return folded


def _fold(character: str) -> str:
    text = character
    for _ in range(3):
        text = unicodedata.normalize("NFKD", text).casefold()
    return "".join(_part(sign) for sign in unicodedata.normalize("NFKD", text))


def _part(character: str) -> str:
    kind = unicodedata.category(character)[0]
    if kind == "M":
        return ""
    if kind not in "LN":
        return " "
    unspaced = unicodedata.name(character, "").startswith(_UNSPACED_SCRIPTS)
    return f" {character} " if unspaced else character


FOLDED_LETTERS = _Folding()
_ASCII = bytes(
    ord(FOLDED_LETTERS[code_point]) if code_point < 128 else 32 for code_point in range(256)
)
