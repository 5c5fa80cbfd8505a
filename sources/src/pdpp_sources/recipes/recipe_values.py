"""Values of rows as the fields of a recipe say that they are meant."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import cache
from typing import Any, cast
from zoneinfo import ZoneInfo

from pdpp_kernel.source_item import Data, Json
from pdpp_sources.common.epochs import UNIX
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import one_line, or_none, printable, printable_within
from pdpp_sources.common.times import from_iso, iso_seconds, rendered
from pdpp_sources.recipes.json_places import path_of
from pdpp_sources.recipes.recipe import Alternatives, RecipeField
from pdpp_sources.tables.column_amounts import POINTS, amount_forms, amount_value, is_currency
from pdpp_sources.tables.column_days import DAY_FIRST, MONTH_FIRST, day_forms, day_value

BY_COLUMN = "by-column"
_LONGEST_WORD_CHARS = 1000
_ABSENT = object()
_ZERO = re.compile(r"0{4}-00-00|0000/00/00")
_CLOCK = re.compile(r"(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:\.\d{1,9})?)")
_TRUE, _FALSE = frozenset({"true", "yes", "1", "y"}), frozenset({"false", "no", "0", "n"})


def value_at(row: Data, places: Alternatives) -> Json:
    """What stands in a row at the first of some places that it has; None where it has none."""
    for place in places:
        found = _at(row, path_of(place))
        if found is not _ABSENT and found != "":
            return found
    return None


def has_place(row: Data, places: Alternatives) -> bool:
    """Whether a row has one of some places, with whatever in it."""
    return any(_at(row, path_of(place)) is not _ABSENT for place in places)


def _at(value: Any, segments: tuple[str, ...]) -> Any:
    """What stands at a place; `*` stands for every entry of a list, and gives a list."""
    for number, name in enumerate(segments):
        if name == "*" and isinstance(value, list):
            entries = cast("list[Any]", value)
            found = [_at(each, segments[number + 1 :]) for each in entries]
            return [each for each in found if each is not _ABSENT]
        if isinstance(value, dict):
            value = cast("Data", value).get(name, _ABSENT)
        elif isinstance(value, list) and name.isdecimal():
            entries = cast("list[Any]", value)
            value = entries[int(name)] if int(name) < len(entries) else _ABSENT
        else:
            return _ABSENT
    return value


def written(value: Json) -> str | None:
    """A value as text, as it stands in the file; None for a list, an object or nothing."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case str():
            return or_none(printable(value).strip())
        case int() | float():
            return str(value)
        case list():
            parts = [written(each) for each in cast("list[Any]", value)]
            return or_none("\n".join(part for part in parts if part))
        case _:
            return None


def converted(value: Json, column: RecipeField, zone: tzinfo, form: str | None) -> Json:
    """A value as its field is; `form` as of the field, or as its column was found to be.

    Raises: BadRecord, where it is something else; never of a value that is not there.
    """
    if value is None or value == "":
        return None
    if column.kind == "json":
        return printable_within(value)
    if column.kind == "names":
        return _names(value, column.split)
    text = written(value)
    if text is None:
        if value in ([], {}):
            return None
        if isinstance(value, str):
            return None  # blanks
        raise _unlike()
    return _OF_KINDS[column.kind](text, column, _zone(column.zone) if column.zone else zone, form)


def _unlike() -> BadRecord:
    return BadRecord("no_value", "a value of the entry is of another kind than its field")


@cache
def _zone(name: str) -> tzinfo:
    return ZoneInfo(name)


def _names(value: Json, sign: str) -> list[str] | None:
    """A list of texts; text is a list as JSON writes it, or is cut at a sign."""
    entries = cast("list[Any]", value) if isinstance(value, list) else _listed(str(value), sign)
    found = [written(each) for each in entries]
    return [one_line(each) for each in found if each] or None


def _listed(text: str, sign: str) -> list[Any]:
    try:
        entries = json.loads(text) if text.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        entries = None
    return cast("list[Any]", entries) if isinstance(entries, list) else text.split(sign)


def _text(text: str, *_: object) -> str:
    return text


def _word(text: str, *_: object) -> str | None:
    return or_none(one_line(text, _LONGEST_WORD_CHARS))


def _currency(text: str, *_: object) -> str:
    """A code, in capitals where it has three letters, or a sign. Raises: BadRecord."""
    if not is_currency(text):
        raise _unlike()
    return text.upper() if len(text) == 3 and text.isalpha() and text.isascii() else text


def _whole(text: str, *rest: Any) -> int:
    number = _number(text, *rest)
    if number != int(number) or abs(number) >= 2**63:
        raise _unlike()
    return int(number)


def _number(text: str, column: RecipeField, *_: object) -> float:
    text = text.strip("'")  # Amazon writes what is below zero so
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if re.fullmatch(r"-?\d*\.?\d+(?:[eE][-+]?\d{1,2})?", text) and column.decimal == ".":
        return _finite(float(text))
    forms = [form for form in sorted(amount_forms(text)) if POINTS[form] == column.decimal]
    if not forms:
        raise _unlike()
    return _finite(amount_value(text, forms[0]))


def _finite(number: float) -> float:
    """A number of so many digits that it is infinite to this machine is none. Raises: BadRecord."""
    if not math.isfinite(number):
        raise _unlike()
    return number


def _duration(text: str, column: RecipeField, *_: object) -> float:
    """Seconds: of `1:02:03`, `02:03`, `PT1H2M3S`, or a number of seconds. Raises: BadRecord."""
    if found := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (float(part or 0) for part in found.groups())
        return (hours * 60 + minutes) * 60 + seconds
    seconds = iso_seconds(text)
    return _number(text, column) if seconds is None else seconds


def _flag(text: str, *_: object) -> bool:
    lower = text.lower()
    if lower not in _TRUE | _FALSE:
        raise _unlike()
    return lower in _TRUE


def _instant(text: str, column: RecipeField, zone: tzinfo, form: str | None) -> str | None:
    """An instant in UTC. Raises: BadRecord."""
    if form in UNIX:
        if re.fullmatch(r"-?\d+", text):
            return UNIX[form].instant(int(text)) if int(text) else None
        return UNIX[form].instant(float(_number(text, column)))
    if form and "%" in form:
        return rendered(_parsed(text, form), zone)
    if form is None and (iso := _iso(text, zone)):
        return iso
    return day_value(text, _form_of(text, form, " time"), zone)


def _iso(text: str, zone: tzinfo) -> str | None:
    if _ZERO.match(text):
        raise _unlike()
    try:
        return from_iso(text, zone) if "-" in text[:5] else None
    except BadRecord:
        return None


def _day(text: str, column: RecipeField, zone: tzinfo, form: str | None) -> str | None:
    """A day; of an instant the one on which it is as it is written. Raises: BadRecord."""
    if form in UNIX:
        instant = _instant(text, column, zone, form)
        return instant and datetime.fromisoformat(instant).astimezone(zone).date().isoformat()
    if form and "%" in form:
        return _parsed(text, form).date().isoformat()
    return day_value(text, _form_of(text, form, ""), zone)[:10]


def _parsed(text: str, form: str) -> datetime:
    try:
        return datetime.strptime(text, form)  # noqa: DTZ007  # a zone may be named in it or follow
    except ValueError:
        raise BadRecord("bad_date", "the date of the entry cannot be read") from None


def _form_of(text: str, form: str | None, of_instants: str) -> str:
    """The form of `column_days` in which a cell says what its recipe calls so."""
    found = day_forms(text)
    wanted = {"day-first": DAY_FIRST, "month-first": MONTH_FIRST}.get(form or "", frozenset({form}))
    clear = {"date", "date-time", "day.month.", "day.month. time", "yyyymmdd", "yyyymmddhhmmss"}
    fitting = sorted(found & (wanted | clear), key=lambda name: (name in clear, name))
    suited = [name for name in fitting if name.endswith(of_instants)] or fitting
    if of_instants and "date-time" in fitting:
        return "date-time"
    if not suited:
        raise BadRecord("bad_date", "the date of the entry cannot be read")
    return suited[0]


_OF_KINDS: Mapping[str, Callable[..., Json]] = {
    "text": _text,
    "word": _word,
    "name": _word,
    "string": _word,
    "reference": _word,
    "currency": _currency,
    "whole": _whole,
    "number": _number,
    "amount": _number,
    "duration": _duration,
    "flag": _flag,
    "day": _day,
    "instant": _instant,
}
