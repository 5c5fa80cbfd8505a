"""Columns learnt from their values: the narrowest type that holds all of them, and their roles."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any

from pdpp_kernel.source_item import Json
from pdpp_sources.common.epochs import EPOCHS, epoch_of, is_time_name
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import printable, printable_within
from pdpp_sources.common.times import from_iso

MOST_COLUMNS = 200
# Each spelling with its type. A number with a comma, or a day with slashes, means something only
# beside the others of its column: each cell names every spelling that it fits, and of those that
# all cells share the first counts.
SPELLINGS = {
    "boolean": "boolean",
    **dict.fromkeys(EPOCHS, "date-time"),
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
_VALUES: dict[str, Callable[[str], Json]] = {
    "integer": int,
    "number": float,
    "1,234.5": lambda text: float(re.sub(r"[^-\d.]", "", text)),
    "1.234,5": lambda text: float(re.sub(r"[^-\d,]", "", text).replace(",", ".")),
    "boolean": lambda text: text.lower() == "true",
}
_NO_INSTANTS = set(SPELLINGS) - set(EPOCHS)
# How programs write that there is no value, where a number or a day should be.
_NO_VALUES = frozenset({"", "nan", "n/a", "na", "#n/a", "null", "none", "nil", "-", "–", "—", "?"})
_DISTINCT_KEPT = 1000
_GROUPS = 200
_KEY_NAMES = ("id", "key", "uuid", "guid")
# `Transaction ID`, `order_id`, `OrderId`: what names each row of a file, if no other row has it.
_KEY_NAME = re.compile(
    r"(?:.*[ _.-])?(?:id|key|uuid|guid)|[A-Za-z]*[a-z](?:Id|ID)"
    r"|(?:transaction|order|booking|payment|reference) ?(?:no\.?|number|code)",
)
_MOST_KEYS = 1_000_000
_TITLE_NAMES = ("title", "name", "subject", "headline", "summary", "label")
_UNNAMED = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: its name in the file, its name as a field, its type, its roles."""

    source_name: str
    name: str
    spelling: str
    is_key: bool = False
    is_time: bool = False
    is_title: bool = False
    is_grouped: bool = False

    @property
    def kind(self) -> str:
        """The type of its values."""
        return SPELLINGS[self.spelling]


class Survey:
    """Values of a table, column by column."""

    def __init__(self) -> None:
        self._columns: dict[str, _Statistics] = {}
        self._rows = 0
        self.has_more_columns = False

    def add(self, values: dict[str, Json]) -> None:
        """Learn from one row."""
        self._rows += 1
        for name, value in values.items():
            if name in self._columns or len(self._columns) < MOST_COLUMNS:
                if name not in self._columns:
                    most = _MOST_KEYS if is_key_name(name) else _DISTINCT_KEPT
                    spellings = set(SPELLINGS) if is_time_name(name) else _NO_INSTANTS
                    self._columns[name] = _Statistics(most, set(spellings), set(spellings))
                self._columns[name].add(value)
            else:
                self.has_more_columns = True

    def columns(self) -> tuple[TableColumn, ...]:
        """The columns in their order, with one key, one time and one title at most."""
        names = field_names(self._columns)
        named = [n for n in self._columns if is_key_name(n) and self._is_unique(n)]
        key = next((n for n in named if n.lower() in _KEY_NAMES), next(iter(named), None))
        timed = [n for n, column in self._columns.items() if column.kind in ("date-time", "date")]
        whole = [n for n in timed if self._columns[n].filled == self._rows]
        texts = [n for n, column in self._columns.items() if column.kind == "string" and n != key]
        title = next((n for n in texts if n.lower() in _TITLE_NAMES), next(iter(texts), None))
        time = next(iter(whole or timed), None)
        return tuple(
            TableColumn(
                name,
                names[name],
                column.spelling,
                is_key=name == key,
                is_time=name == time,
                is_title=name == title,
                is_grouped=self._is_grouped(name) and name != key,
            )
            for name, column in self._columns.items()
        )

    def _is_unique(self, name: str) -> bool:
        column = self._columns[name]
        usable = column.kind in ("integer", "string")
        return usable and not column.repeated and column.filled == self._rows

    def _is_grouped(self, name: str) -> bool:
        column = self._columns[name]
        short = column.kind in ("string", "boolean") and column.longest <= 80
        few = column.most_distinct > 0 and len(column.distinct) <= _GROUPS
        return short and column.repeated and few


@dataclass(slots=True)
class _Statistics:
    """What the values of a column have in common so far."""

    most_distinct: int
    spellings: set[str]
    spellings_of_values: set[str]
    valued: int = 0
    distinct: set[int] = field(default_factory=set[int])
    filled: int = 0
    repeated: bool = False
    longest: int = 0

    def add(self, value: Json) -> None:
        if value is None or value == "":
            return
        self.filled += 1
        found = spellings_of(value)
        self.spellings &= found
        if not says_nothing(value):
            self.valued += 1
            self.spellings_of_values &= found
        mark = hash(str(value))
        self.repeated |= mark in self.distinct
        if self.repeated and len(self.distinct) > _DISTINCT_KEPT:
            self.distinct.clear()  # no key; and of a thousand values no group either
            self.most_distinct = 0
        if len(self.distinct) < self.most_distinct:
            self.distinct.add(mark)
        self.longest = max(self.longest, len(value) if isinstance(value, str) else 0)

    @property
    def spelling(self) -> str:
        spelling = agreed(self.spellings) if self.filled else "string"
        if spelling in ("string", "json") and self.valued:
            of_values = agreed(self.spellings_of_values)
            return spelling if of_values in ("string", "json") else of_values
        return spelling

    @property
    def kind(self) -> str:
        return SPELLINGS[self.spelling]


def is_key_name(name: str) -> bool:
    """Whether a column is called as one that names rows."""
    plain = name.strip()
    return bool(_KEY_NAME.fullmatch(plain) or _KEY_NAME.fullmatch(plain.lower()))


def field_names(names: Any) -> dict[str, str]:
    """A valid, distinct field name for each column; `id` is kept for the record's own key."""
    taken: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        plain = _UNNAMED.sub("_", name.strip()).strip("_")[:100] or f"column_{number}"
        plain = plain if not plain[0].isdigit() and plain[0] != "-" else f"_{plain}"
        plain = f"{plain}_{number}" if plain in taken.values() else plain
        taken[name] = plain
    return taken


def spellings_of(value: Json) -> set[str]:
    """Every spelling that a cell of a table fits."""
    if isinstance(value, bool):
        return {"boolean", "json"}
    if isinstance(value, int):
        return {"integer", "number", "json"} | _instants(value) if abs(value) < 2**63 else {"json"}
    if isinstance(value, float):
        return {"number", "json"} | _instants(value) if abs(value) < 1e300 else {"json"}
    if not isinstance(value, str):
        return {"json"}
    value = value.strip()
    found = {name for name, pattern in _PATTERNS.items() if pattern.fullmatch(value)}
    found |= {name for name in _DAYS if _day(value, name) is not None}
    if "date" in found or (len(value) > 12 and value[:4].isdigit() and _is_instant(value)):
        found.add("date-time")
    return found | {"string", "json"}


def _instants(number: float) -> set[str]:
    """The epochs that a number may be counted from; zero is an empty cell in all of them."""
    epoch = epoch_of(number)
    return set(EPOCHS) if number == 0 else {epoch.name} if epoch else set()


def says_nothing(value: Json) -> bool:
    """Whether a cell is filled with words for having no value, or with blanks."""
    return isinstance(value, str) and value != "" and value.strip().lower() in _NO_VALUES


def agreed(shared: AbstractSet[str]) -> str:
    """The spelling of a column whose cells share these; what is ambiguous stays text."""
    if {"day/month", "month/day"} <= shared:
        return "string"
    if len(shared & EPOCHS.keys()) > 1:  # nothing but zeroes
        shared = shared - EPOCHS.keys()
    return next((name for name in SPELLINGS if name in shared), "json")


def typed(value: Json, spelling: str, zone: tzinfo) -> Json:
    """A cell as its column's type; None for an empty one. Raises: BadRecord."""
    if value is None or value == "":
        return None
    if SPELLINGS[spelling] not in ("string", "json") and isinstance(value, str):
        if says_nothing(value):
            return None
        value = value.strip()
    if spelling not in spellings_of(value):
        raise BadRecord("bad_record", "a cell does not fit the type of its column")
    if spelling in EPOCHS:
        return EPOCHS[spelling].instant(value) if value else None
    if not isinstance(value, str):
        return printable_within(value)
    if spelling == "date-time":
        return from_iso(value, zone)
    if spelling in _DAYS:
        return day.isoformat() if (day := _day(value, spelling)) else None
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
