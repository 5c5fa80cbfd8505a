"""When a repeating event takes place: the rules of RFC 5545 as dateutil reads them, within bounds.

Wall time is kept over changes of the clock. Rules by the hour or shorter are refused: one of them
that never holds would be tried for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, time
from itertools import islice
from typing import Any, cast

from dateutil.rrule import rrulestr

MOST_STARTS = 40_000
_CYCLE_YEARS = 400
"""Dates and weekdays come again after so long. dateutil looks for a day until the year 9999, so a
rule is asked in the last cycle: one that never holds ends soon."""

_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_OF_TIME = ("BYHOUR", "BYMINUTE", "BYSECOND")
_ANY = datetime(2024, 1, 1)  # noqa: DTZ001 (wall time)

Start = datetime | date


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of repetition that can be spelled out: its parts as written, without its end."""

    parts: Mapping[str, str]
    until: Start | None = None

    def starts(self, begins: Start, last: date) -> Iterator[Start]:
        """All beginnings up to a day, in their order."""
        end = datetime.combine(last, time.max)
        if self.until is not None:
            end = min(end, _wall_end(self.until, begins))
        try:
            for start in islice(self._walls(begins, last), MOST_STARTS):
                if start > end:
                    return
                yield _like(begins, start)
        except (ValueError, OverflowError):
            return

    def _walls(self, begins: Start, last: date) -> Iterator[datetime]:
        if isinstance(begins, datetime):
            parts, first = self.parts, begins.replace(tzinfo=None)
        else:
            parts = {name: each for name, each in self.parts.items() if name not in _OF_TIME}
            first = datetime.combine(begins, time.min)
        cycles = (MAXYEAR - max(first.year, last.year)) // _CYCLE_YEARS * _CYCLE_YEARS
        for start in _expanded(parts, first.replace(year=first.year + cycles)):
            yield start.replace(year=start.year - cycles)


SINGLE = Rule({"FREQ": "DAILY", "COUNT": "1"})
"""The rule of an event that takes place once."""


def parse_rule(rule: object) -> Rule | None:
    """The rule, or None if it is none that can be spelled out."""
    if not isinstance(rule, Mapping):
        return None
    parts = cast("Mapping[str, Any]", rule)
    written = {name.upper(): ",".join(str(each) for each in _all(parts, name)) for name in parts}
    written.pop("UNTIL", None)
    until = next(iter(_all(parts, "UNTIL")), None)
    if written.get("FREQ", "").upper() not in _FREQUENCIES or "BYEASTER" in written:
        return None
    try:
        if int(written.get("INTERVAL", 1)) < 1:
            del written["INTERVAL"]
        if int(written.get("COUNT", 1)) < 1:
            del written["COUNT"]
        _expanded(written, _ANY)
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
    return Rule(written, until if isinstance(until, date) else None)


def _expanded(parts: Mapping[str, str], begins: datetime) -> Any:
    return rrulestr(";".join(f"{name}={each}" for name, each in parts.items()), dtstart=begins)


def _wall_end(until: Start, begins: Start) -> datetime:
    """The last moment of a rule by the clock that its event begins by."""
    if not isinstance(until, datetime):
        return datetime.combine(until, time.max)
    if not isinstance(begins, datetime):
        return datetime.combine(until, time.max)
    if until.tzinfo is not None and begins.tzinfo is not None:
        until = until.astimezone(begins.tzinfo)
    return until.replace(tzinfo=None)


def _like(begins: Start, start: datetime) -> Start:
    if isinstance(begins, datetime):
        return start.replace(tzinfo=begins.tzinfo, fold=begins.fold)
    return start.date()


def _all(parts: Mapping[str, Any], name: str) -> list[Any]:
    value = parts.get(name)
    if isinstance(value, list | tuple):
        return list(cast("list[Any]", value))
    return [] if value is None else [value]
