"""Masking of sample values: enough to recognise the kind of record, too little to read it.  Pure.

Source: AS contract 7, item 3: strings keep two characters, numbers one leading digit, times the
date, anything nested its type only.
"""

from __future__ import annotations

from personal_server.console.words import day_of_text, shown
from personal_server.domain.values import ValueKind, day_number, instant_ns

HIDDEN = "•••"
_KEPT_CHARS = 2


def mask(value: object, kind: ValueKind | None) -> str:
    """A value as a sample shows it; of a short string at most half is kept."""
    match value:
        case None:
            return "empty"
        case bool():
            return "yes or no"
        case int() | float():
            return _number(value)
        case str():
            return _text(value, kind)
        case list():
            return "a list"
        case _:
            return "an object"


def _number(value: float) -> str:
    digit = next((character for character in str(value) if character in "123456789"), "0")
    return f"{'−' if value < 0 else ''}{digit}{HIDDEN}"


def _text(value: str, kind: ValueKind | None) -> str:
    timely = kind in (ValueKind.DATE, ValueKind.INSTANT)
    if timely and (instant_ns(value) is not None or day_number(value) is not None):
        return day_of_text(value)
    readable = shown(value, 80)
    if not readable:
        return "empty"
    return readable[: min(_KEPT_CHARS, len(readable) // 2)] + HIDDEN
