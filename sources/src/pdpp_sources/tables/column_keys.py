"""Which columns name rows, judged as tables were before codes and more forms of days were known.

What is stored is found again by its key, so that what makes a column the key, and the text of a
key, never change: a column of `001` was one of numbers, and none but whole numbers name rows.
"""

from __future__ import annotations

import re
from datetime import datetime

from pdpp_kernel.source_item import Json
from pdpp_sources.common.text import printable

KEY_NAMES = ("id", "key", "uuid", "guid")
MOST_KEYS = 1_000_000
# `Transaction ID`, `order_id`, `OrderId`: what names each row of a file, if no other row has it.
_KEY_NAME = re.compile(
    r"(?:.*[ _.-])?(?:id|key|uuid|guid)|[A-Za-z]*[a-z](?:Id|ID)"
    r"|(?:transaction|order|booking|payment|reference) ?(?:no\.?|number|code)",
)
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_MONEY = r"(?:[€$£¥]|EUR|USD|GBP|CHF)"
_NO_TEXTS = {
    "boolean": re.compile(r"true|false", re.IGNORECASE),
    "number": re.compile(r"-?\d{1,15}(\.\d{1,15})?"),
    "1,234.5": re.compile(
        rf"[-+]?{_MONEY}?\s?(\d{{1,3}}(,\d{{3}}){{1,4}}|\d{{1,15}})(\.\d{{1,9}})?\s?{_MONEY}?"
    ),
    "1.234,5": re.compile(
        rf"[-+]?{_MONEY}?\s?(\d{{1,3}}(\.\d{{3}}){{1,4}}|\d{{1,15}})(,\d{{1,9}})?\s?{_MONEY}?"
    ),
}
_DAYS = {
    "date": (re.compile(r"\d{4}-\d{2}-\d{2}"), "%Y-%m-%d"),
    "day.month.": (re.compile(r"\d{1,2}\.\d{1,2}\.\d{2}(\d{2})?"), "%d.%m.%Y"),
    "day/month": (re.compile(r"\d{1,2}/\d{1,2}/\d{2}(\d{2})?"), "%d/%m/%Y"),
    "month/day": (re.compile(r"\d{1,2}/\d{1,2}/\d{2}(\d{2})?"), "%m/%d/%Y"),
}
ANY_FORM = frozenset({"integer", "date-time", *_NO_TEXTS, *_DAYS})


def is_key_name(name: str) -> bool:
    """Whether a column is called as one that names rows."""
    plain = name.strip()
    return bool(_KEY_NAME.fullmatch(plain) or _KEY_NAME.fullmatch(plain.lower()))


def key_forms(value: Json) -> set[str]:
    """What a cell may be but text, as keys are judged."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"integer", "number"} if isinstance(value, int) else {"number"}
    if not isinstance(value, str):
        return {"number"}  # no value of such a kind names a row
    text = value.strip()
    forms = {"integer"} if _INTEGER.fullmatch(text) else set[str]()
    forms |= {name for name, pattern in _NO_TEXTS.items() if pattern.fullmatch(text)}
    forms |= {name for name in _DAYS if _is_day(text, name)}
    if "date" in forms or (len(text) > 12 and text[:4].isdigit() and _is_instant(text)):
        forms.add("date-time")
    return forms


def may_be_key(shared: set[str]) -> bool:
    """Whether the cells of a column, which share these forms, are whole numbers or texts."""
    undecided = {"day/month", "month/day"} <= shared
    return not shared or undecided or ("integer" in shared and "boolean" not in shared)


def key_text(value: Json, *, is_whole: bool) -> str:
    """The key that a cell is."""
    if not isinstance(value, str):
        return "" if value is None else str(value)
    return str(int(value)) if is_whole and value else printable(value)


def _is_day(text: str, name: str) -> bool:
    pattern, form = _DAYS[name]
    match = pattern.fullmatch(text)
    if match is None:
        return False
    if match.groups() == (None,):
        form = form.replace("%Y", "%y")
    try:
        datetime.strptime(text, form)  # noqa: DTZ007  # a day has no zone
    except ValueError:
        return False
    return True


def _is_instant(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
