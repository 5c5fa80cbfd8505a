"""Columns learnt from their values: the narrowest type that holds all of them, and their roles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any

from personal_server.sources.errors import BadRecord
from personal_server.sources.item import Json
from personal_server.sources.text import printable
from personal_server.sources.times import from_iso

KINDS = ("boolean", "integer", "number", "date", "date-time", "string", "json")
MOST_COLUMNS = 200
_DISTINCT_KEPT = 1000
_GROUPS = 200
_INTEGER = re.compile(r"^-?(0|[1-9]\d{0,17})$")
_NUMBER = re.compile(r"^-?\d{1,15}(\.\d{1,15})?$")
_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}$")
_KEY_NAMES = ("id", "key", "uuid", "guid")
_TITLE_NAMES = ("title", "name", "subject", "headline", "summary", "label")
_UNNAMED = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name in the file, its name as a field, its type, its roles."""

    source_name: str
    name: str
    kind: str
    is_key: bool = False
    is_time: bool = False
    is_title: bool = False
    is_grouped: bool = False
    is_text: bool = False


@dataclass(slots=True)
class _Seen:
    """What the values of a column have in common so far."""

    kinds: set[str] = field(default_factory=lambda: set(KINDS))
    distinct: set[int] = field(default_factory=set[int])
    filled: int = 0
    repeated: bool = False
    longest: int = 0

    def see(self, value: Json) -> None:
        if value is None or value == "":
            return
        self.filled += 1
        self.kinds &= _kinds_of(value)
        mark = hash(str(value))
        self.repeated |= mark in self.distinct
        if len(self.distinct) < _DISTINCT_KEPT:
            self.distinct.add(mark)
        self.longest = max(self.longest, len(value) if isinstance(value, str) else 0)

    @property
    def kind(self) -> str:
        return (
            next((kind for kind in KINDS if kind in self.kinds), "json")
            if self.filled
            else "string"
        )


class Survey:
    """Values of a table, column by column."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._rows = 0

    def see(self, values: dict[str, Json]) -> None:
        """Learn from one row."""
        self._rows += 1
        for name, value in values.items():
            if name in self._seen or len(self._seen) < MOST_COLUMNS:
                self._seen.setdefault(name, _Seen()).see(value)

    def columns(self) -> tuple[Column, ...]:
        """The columns in their order, with one key, one time and one title at most."""
        names = field_names(self._seen)
        key = next((n for n in self._seen if n.lower() in _KEY_NAMES and self._is_unique(n)), None)
        timed = [n for n, seen in self._seen.items() if seen.kind in ("date-time", "date")]
        whole = [n for n in timed if self._seen[n].filled == self._rows]
        texts = [n for n, seen in self._seen.items() if seen.kind == "string" and n != key]
        title = next((n for n in texts if n.lower() in _TITLE_NAMES), next(iter(texts), None))
        time = next(iter(whole or timed), None)
        return tuple(
            Column(
                name,
                names[name],
                seen.kind,
                is_key=name == key,
                is_time=name == time,
                is_title=name == title,
                is_grouped=self._is_grouped(name) and name != key,
                is_text=seen.kind == "string" and name != key,
            )
            for name, seen in self._seen.items()
        )

    def _is_unique(self, name: str) -> bool:
        seen = self._seen[name]
        usable = seen.kind in ("integer", "string")
        return usable and not seen.repeated and seen.filled == self._rows

    def _is_grouped(self, name: str) -> bool:
        seen = self._seen[name]
        short = seen.kind in ("string", "boolean") and seen.longest <= 80
        return short and seen.repeated and len(seen.distinct) <= _GROUPS


def field_names(names: Any) -> dict[str, str]:
    """A valid, distinct field name for each column; `id` is kept for the record's own key."""
    taken: dict[str, str] = {}
    for number, name in enumerate(names, 1):
        plain = _UNNAMED.sub("_", name.strip()).strip("_")[:100] or f"column_{number}"
        plain = plain if not plain[0].isdigit() and plain[0] != "-" else f"_{plain}"
        plain = f"{plain}_{number}" if plain in taken.values() else plain
        taken[name] = plain
    return taken


def _kinds_of(value: Json) -> set[str]:
    if isinstance(value, bool):
        return {"boolean", "json"}
    if isinstance(value, int):
        return {"integer", "number", "json"} if abs(value) < 2**63 else {"json"}
    if isinstance(value, float):
        return {"number", "json"} if abs(value) < 1e300 else {"json"}
    if not isinstance(value, str):
        return {"json"}
    kinds = {"string", "json"}
    if _INTEGER.match(value):
        kinds |= {"integer", "number"}
    elif _NUMBER.match(value):
        kinds.add("number")
    elif value.lower() in ("true", "false"):
        kinds.add("boolean")
    elif _DAY.match(value) and _exists(value):
        kinds |= {"date", "date-time"}
    elif len(value) > 12 and value[:4].isdigit() and _is_instant(value):
        kinds.add("date-time")
    return kinds


def _exists(day: str) -> bool:
    try:
        date.fromisoformat(day)
    except ValueError:
        return False
    return True


def _is_instant(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def typed(value: Json, column: Column, zone: tzinfo) -> Json:
    """The value as its column's type; None for an empty one. Raises: BadRecord."""
    if value is None or value == "":
        return None
    if column.kind not in _kinds_of(value):
        raise BadRecord("bad_record", "a cell does not fit the type of its column")
    if not isinstance(value, str):
        return value
    match column.kind:
        case "integer":
            return int(value)
        case "number":
            return float(value)
        case "boolean":
            return value.lower() == "true"
        case "date-time":
            return from_iso(value, zone)
        case _:
            return printable(value)
