"""Numbers as programs write them in cells: signs, groups of digits, decimal commas, currencies.

A number with a comma means something only beside the others of its column, so each way of writing
one has a name of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

_CODES = (
    "EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|ISK|PLN|CZK|HUF|RON|BGN|CAD|AUD|NZD|INR|BRL|MXN|RUB|TRY|ZAR|CNY"
    "|HKD|SGD|KRW|ILS|UAH|THB|PHP|IDR|MYR|AED|SAR|BTC|ETH"
)
_MONEY = rf"(?:(?:US|CA|AU|NZ|HK|R|A|C|S)?\$|[€£¥₹₽₩₺₴₪฿₫₱]|{_CODES}|[Kk]r\.?|zł|Kč|Ft|Fr\.)"
_CURRENCY = re.compile(rf"(?:[A-Za-z]{{3}}|[A-Z]{{4,5}}|{_MONEY})")
_SIGN = "[-+\u2212]"
_BLANKS = " \u00a0\u202f\u2009"
_GROUPS = {
    ",": r"[1-9]\d{0,2}(?:,\d{3}){1,4}|[1-9]\d?(?:,\d{2}){1,4},\d{3}",
    ".": r"[1-9]\d{0,2}(?:\.\d{3}){1,4}",
    " ": rf"[1-9]\d{{0,2}}(?:[{_BLANKS}]\d{{3}}){{1,4}}",
    "'": r"[1-9]\d{0,2}(?:['’]\d{3}){1,4}",
}


def is_currency(text: str) -> bool:
    """Whether it is a code (`EUR`, `usdc` is none, `USDC` is one), or a sign (`€`, `R$`, `kr`)."""
    return _CURRENCY.fullmatch(text) is not None


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """How each is known; made for the first table, since making them takes longer than reading."""
    return {form: _written(groups, point) for form, (point, groups) in AMOUNT_FORMS.items()}


def _written(groups: str, point: str) -> re.Pattern[str]:
    """A number whose digits are grouped by one sign and whose decimals follow another."""
    digits = rf"(?:{groups}|\d{{1,15}})(?:[{point}]\d{{1,9}})?|[{point}]\d{{1,9}}"
    money = rf"(?:{_MONEY}[{_BLANKS}]?)?"
    after = rf"(?:[{_BLANKS}]?{_MONEY})?"
    inner = rf"{money}(?:{_SIGN}[{_BLANKS}]?)?{money}(?:{digits})(?:-)?{after}"
    return re.compile(rf"(?:{_SIGN}[{_BLANKS}]?)?(?:{inner})|{money}\({money}(?:{digits}){after}\)")


# Each way of writing them, with its decimal sign and how its digits are grouped.
AMOUNT_FORMS = {
    "1,234.5": (".", _GROUPS[","]),
    "1.234,5": (",", _GROUPS["."]),
    "1 234.5": (".", f"{_GROUPS[' ']}|{_GROUPS[chr(39)]}"),
    "1 234,5": (",", f"{_GROUPS[' ']}|{_GROUPS[chr(39)]}"),
}
POINTS = {form: point for form, (point, _) in AMOUNT_FORMS.items()}
# Digits in threes behind one sign, which may group them or begin their decimals.
_THREES = re.compile(r"[^\d.,]*[1-9]\d{0,2}([.,])\d{3}[^\d.,]*")
_OF_MONEY = re.compile(_MONEY)


def amount_forms(text: str) -> set[str]:
    """The ways in which a cell may be a number."""
    return {form for form, pattern in _patterns().items() if pattern.fullmatch(text)}


def amount_value(text: str, form: str) -> float:
    """The number that a cell of that form is."""
    point = POINTS[form]
    bare = _OF_MONEY.sub("", text)
    digits = "".join(sign for sign in bare if sign.isdecimal() or sign == point)
    number = float(digits.replace(point, "."))
    return -number if any(sign in bare for sign in "-\u2212(") else number


def currency_of(text: str) -> str | None:
    """The sign or code of the currency of a cell."""
    match = _OF_MONEY.search(text)
    return match[0] if match else None


def says_point(text: str) -> str | None:
    """Which sign begins the decimals, where a number with one sign tells: `1.5`, `1,25`.

    None where it may group digits as well (`1.234`), or there is no sign, or there are several.
    """
    signs = [sign for sign in text if sign in ".,"]
    if not signs or _THREES.fullmatch(text):
        return None
    if len(set(signs)) == 2:
        return signs[-1]
    if len(signs) == 1:
        return signs[0]
    return "," if signs[0] == "." else "."  # it comes twice, so it groups
