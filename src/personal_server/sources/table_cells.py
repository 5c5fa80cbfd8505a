"""What one cell of a table can be, and its value once the whole column agrees.

A number with a comma, or a day with slashes, means something only beside the others of its column:
each cell names every spelling that it fits, and those that all cells share are what is left.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from datetime import date, datetime, tzinfo

from personal_server.domain.source_item import Json
from personal_server.sources.errors import BadRecord
from personal_server.sources.text import printable
from personal_server.sources.times import from_iso

SPELLINGS = {
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "1,234.5": "number",
    "1.234,5": "number",
    "date": "date",
    "day.month.": "date",
    "day/month": "date",
    "month/day": "date",
    "date-time": "date-time",
    "string": "string",
    "json": "json",
}
"""Each spelling with the type that it is of; where a column fits several, the first counts."""

_MONEY = r"(?:[€$£¥]|EUR|USD|GBP|CHF)"
_PATTERNS = {
    "integer": re.compile(r"-?(0|[1-9]\d{0,17})"),
    "number": re.compile(r"-?\d{1,15}(\.\d{1,15})?"),
    "1,234.5": re.compile(
        rf"[-+]?{_MONEY}?\s?(\d{{1,3}}(,\d{{3}}){{1,4}}|\d{{1,15}})(\.\d{{1,9}})?\s?{_MONEY}?"
    ),
    "1.234,5": re.compile(
        rf"[-+]?{_MONEY}?\s?(\d{{1,3}}(\.\d{{3}}){{1,4}}|\d{{1,15}})(,\d{{1,9}})?\s?{_MONEY}?"
    ),
    "boolean": re.compile(r"true|false", re.IGNORECASE),
}
_DAYS = {
    "date": (re.compile(r"\d{4}-\d{2}-\d{2}"), "%Y-%m-%d"),
    "day.month.": (re.compile(r"\d{1,2}\.\d{1,2}\.\d{2}(\d{2})?"), "%d.%m.%Y"),
    "day/month": (re.compile(r"\d{1,2}/\d{1,2}/\d{2}(\d{2})?"), "%d/%m/%Y"),
    "month/day": (re.compile(r"\d{1,2}/\d{1,2}/\d{2}(\d{2})?"), "%m/%d/%Y"),
}


def spellings_of(value: Json) -> set[str]:
    """Every spelling that a cell fits."""
    if isinstance(value, bool):
        return {"boolean", "json"}
    if isinstance(value, int):
        return {"integer", "number", "json"} if abs(value) < 2**63 else {"json"}
    if isinstance(value, float):
        return {"number", "json"} if abs(value) < 1e300 else {"json"}
    if not isinstance(value, str):
        return {"json"}
    found = {name for name, pattern in _PATTERNS.items() if pattern.fullmatch(value)}
    found |= {name for name in _DAYS if _day(value, name) is not None}
    if "date" in found or (len(value) > 12 and value[:4].isdigit() and _is_instant(value)):
        found.add("date-time")
    return found | {"string", "json"}


def agreed(shared: AbstractSet[str]) -> str:
    """The spelling of a column whose cells share these; what is ambiguous stays text."""
    if {"day/month", "month/day"} <= shared:
        return "string"
    return next((name for name in SPELLINGS if name in shared), "json")


def typed(value: Json, spelling: str, zone: tzinfo) -> Json:
    """A cell as its column's type; None for an empty one. Raises: BadRecord."""
    if value is None or value == "":
        return None
    if spelling not in spellings_of(value):
        raise BadRecord("bad_record", "a cell does not fit the type of its column")
    if not isinstance(value, str):
        return value
    if spelling == "date-time":
        return from_iso(value, zone)
    return _VALUES.get(spelling, printable)(value)


def _day(text: str, spelling: str) -> date | None:
    pattern, form = _DAYS[spelling]
    found = pattern.fullmatch(text)
    if found is None:
        return None
    if found.groups() == (None,):
        form = form.replace("%Y", "%y")
    try:
        return datetime.strptime(text, form).date()  # noqa: DTZ007  # a day has no zone
    except ValueError:
        return None


def _is_instant(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _day_text(spelling: str) -> Callable[[str], Json]:
    return lambda text: day.isoformat() if (day := _day(text, spelling)) else None


_VALUES: dict[str, Callable[[str], Json]] = {
    "integer": int,
    "number": float,
    "1,234.5": lambda text: float(re.sub(r"[^-\d.]", "", text)),
    "1.234,5": lambda text: float(re.sub(r"[^-\d,]", "", text).replace(",", ".")),
    "boolean": lambda text: text.lower() == "true",
    **{spelling: _day_text(spelling) for spelling in _DAYS},
}
