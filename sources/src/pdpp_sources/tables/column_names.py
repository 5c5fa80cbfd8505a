"""Names of columns as identifiers: letters of other scripts are written in Latin ones.

A field of a stream is called by ASCII letters, digits, `_` and `-`; how the file calls the column
stays with the field as its title.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_CHARS = 100
_LATIN = {
    "ä": "ae",
    "ö": "oe",
    "ü": "ue",
    "ß": "ss",
    "Ä": "Ae",
    "Ö": "Oe",
    "Ü": "Ue",
    "ẞ": "SS",
    "æ": "ae",
    "Æ": "Ae",
    "œ": "oe",
    "Œ": "Oe",
    "ø": "o",
    "Ø": "O",
    "đ": "d",
    "Đ": "D",
    "ð": "d",
    "Ð": "D",
    "þ": "th",
    "Þ": "Th",
    "ł": "l",
    "Ł": "L",
    "ı": "i",
    "ŋ": "ng",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "%": "percent",
    "°": "deg",
    "№": "No",
    "²": "2",
}
_CYRILLIC = "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґўјљњћџђ"
_CYRILLIC_IN_LATIN = (
    "a b v g d e e zh z i y k l m n o p r s t u f kh ts ch sh shch - y - e yu ya i yi ye g u j lj"
    " nj c dz dj"
)
_GREEK = "αβγδεζηθικλμνξοπρσςτυφχψω"
_GREEK_IN_LATIN = "a v g d e z i th i k l m n x o p r s s t y f ch ps o"
_LETTERS = {
    letter: "" if latin == "-" else latin
    for letter, latin in zip(
        _CYRILLIC + _GREEK, f"{_CYRILLIC_IN_LATIN} {_GREEK_IN_LATIN}".split(), strict=True
    )
}
_LETTER = re.compile(r"(?:[A-Z]+ )+?(?:LETTER|SYLLABLE|VOWEL SIGN) (?:SMALL )?(.+)")


def field_names(names: Iterable[str], fields_before: Mapping[str, str]) -> dict[str, str]:
    """A valid, distinct field name for each column; one that is `known` keeps its own."""
    fields = {name: fields_before[name] for name in names if name in fields_before}
    used = set(fields.values())
    for number, name in enumerate(names, 1):
        if name not in fields:
            plain = _OTHERS.sub("_", in_latin(name.strip())).strip("_")[:_LONGEST_CHARS]
            plain = plain or _sign_names(name) or f"column_{number}"
            plain = f"_{plain}" if plain[0].isdigit() or plain[0] == "-" else plain
            plain = f"{plain}_{number}" if plain in used else plain
            fields[name] = plain
            used.add(plain)
    return {name: fields[name] for name in names}


def _sign_names(name: str) -> str:
    """What the signs of a name without letters or digits are called."""
    sign_names = (unicodedata.name(sign, "") for sign in name if not sign.isspace())
    plain = "_".join(sign_name.removesuffix(" SIGN") for sign_name in sign_names)
    return _OTHERS.sub("_", plain.lower())[:_LONGEST_CHARS]


def in_latin(name: str) -> str:
    """The name in letters of ASCII, as near to its sound or its sign as is known."""
    return name if name.isascii() else "".join(map(_in_latin, unicodedata.normalize("NFC", name)))


def _in_latin(sign: str) -> str:
    if sign.isascii():
        return sign
    if sign in _LATIN:
        return _LATIN[sign]
    if (lower := sign.lower()) in _LETTERS:
        return _LETTERS[lower] if sign == lower else _LETTERS[lower].capitalize()
    plain = unicodedata.normalize("NFKD", sign)
    bare = "".join(sign for sign in plain if not unicodedata.combining(sign))
    if bare.isascii():
        return bare
    if (lower := bare.lower()) in _LETTERS:
        return _LETTERS[lower] if bare == lower else _LETTERS[lower].capitalize()
    if not sign.isalpha():
        return "_"
    match = _LETTER.fullmatch(unicodedata.name(sign, ""))
    if match:
        return match[1].rpartition(" ")[2].lower()
    return f"u{ord(sign):x}_"  # an ideograph has many readings
