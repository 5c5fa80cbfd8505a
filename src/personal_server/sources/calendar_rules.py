"""When a repeating event takes place: the rules that people make, within bounds.

Source: RFC 5545, 3.3.10 (FREQ, INTERVAL, COUNT, UNTIL, BYDAY, BYMONTHDAY, BYMONTH). Rules with
other parts are not spelled out, and that is said. Wall time is kept over changes of the clock.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import count, islice
from typing import Any, cast

MOST_PERIODS = 40_000
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_KNOWN = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "BYMONTHDAY", "BYMONTH", "WKST"})
_DAY = timedelta(days=1)

Start = datetime | date


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of repetition that can be spelled out."""

    frequency: str
    interval: int
    count: int | None
    until: Start | None
    weekdays: tuple[tuple[int, int], ...]
    month_days: tuple[int, ...]
    months: tuple[int, ...]

    def starts(self, begins: Start, last: date) -> Iterator[Start]:
        """All beginnings up to a day, the first one included, in their order."""
        first = begins.date() if isinstance(begins, datetime) else begins
        time = begins.timetz() if isinstance(begins, datetime) else None
        for day in islice(self._days(first, last), self.count):
            start = day if time is None else datetime.combine(day, time)
            if self._is_over(start):
                return
            yield start

    def _days(self, first: date, last: date) -> Iterator[date]:
        for number in count():
            begin, days = self._period(first, number * self.interval)
            if number > MOST_PERIODS or begin is None or begin > last:
                return
            for day in sorted(set(days)):
                if first <= day <= last:
                    yield day

    def _period(self, first: date, distance: int) -> tuple[date | None, list[date]]:
        """The beginning of a period of repetition, and the days it holds."""
        try:
            match self.frequency:
                case "DAILY":
                    day = first + distance * _DAY
                    return day, [day] if self._fits(day) else []
                case "WEEKLY":
                    monday = first + (7 * distance - first.weekday()) * _DAY
                    wanted = {day for _, day in self.weekdays} or {first.weekday()}
                    days = [monday + day * _DAY for day in wanted]
                    return monday, [day for day in days if self._in_months(day)]
                case "MONTHLY":
                    year, month = divmod(12 * first.year + first.month - 1 + distance, 12)
                    begin = date(year, month + 1, 1)
                    return begin, self._of_month(begin, first) if self._in_months(begin) else []
                case _:
                    begin = date(first.year + distance, 1, 1)
                    months = self.months or (first.month,)
                    each = (self._of_month(begin.replace(month=m), first) for m in months)
                    return begin, [day for days in each for day in days]
        except (ValueError, OverflowError):
            return None, []

    def _of_month(self, begin: date, first: date) -> list[date]:
        length = monthrange(begin.year, begin.month)[1]
        if self.weekdays:
            return [day for nth, weekday in self.weekdays for day in _nth(begin, nth, weekday)]
        numbers = self.month_days or (first.day,)
        placed = (number if number > 0 else length + 1 + number for number in numbers)
        return [begin.replace(day=number) for number in placed if 1 <= number <= length]

    def _fits(self, day: date) -> bool:
        weekdays = {weekday for _, weekday in self.weekdays}
        return self._in_months(day) and (not weekdays or day.weekday() in weekdays)

    def _in_months(self, day: date) -> bool:
        return not self.months or day.month in self.months

    def _is_over(self, start: Start) -> bool:
        if self.until is None:
            return False
        if isinstance(start, datetime) and isinstance(self.until, datetime):
            if (start.tzinfo is None) != (self.until.tzinfo is None):
                return start.replace(tzinfo=None) > self.until.replace(tzinfo=None)
            return start > self.until
        return _day(start) > _day(self.until)


SINGLE = Rule("DAILY", 1, 1, None, (), (), ())
"""The rule of an event that takes place once."""


def parse_rule(parts: Mapping[str, Any]) -> Rule | None:
    """The rule, or None if it has parts that are not spelled out here."""
    if not set(parts) <= _KNOWN or _one(parts, "FREQ") not in (
        "DAILY",
        "WEEKLY",
        "MONTHLY",
        "YEARLY",
    ):
        return None
    try:
        return Rule(
            str(_one(parts, "FREQ")),
            max(1, int(_one(parts, "INTERVAL") or 1)),
            int(_one(parts, "COUNT")) if _one(parts, "COUNT") else None,
            _one(parts, "UNTIL"),
            tuple(_weekday(str(each)) for each in _all(parts, "BYDAY")),
            tuple(int(each) for each in _all(parts, "BYMONTHDAY")),
            tuple(int(each) for each in _all(parts, "BYMONTH")),
        )
    except (ValueError, TypeError):
        return None


def _day(start: Start) -> date:
    return start.date() if isinstance(start, datetime) else start


def _all(parts: Mapping[str, Any], name: str) -> list[Any]:
    value = parts.get(name)
    if isinstance(value, list | tuple):
        return list(cast("list[Any]", value))
    return [] if value is None else [value]


def _one(parts: Mapping[str, Any], name: str) -> Any:
    return next(iter(_all(parts, name)), None)


def _weekday(text: str) -> tuple[int, int]:
    """`-1FR` as (-1, 4), `MO` as (0, 0). Raises: ValueError."""
    return int(text[:-2] or 0), _WEEKDAYS.index(text[-2:].upper())


def _nth(begin: date, nth: int, weekday: int) -> list[date]:
    """The nth such weekday of a month, counted from its end if negative; all of them for 0."""
    length = monthrange(begin.year, begin.month)[1]
    days = [begin.replace(day=n) for n in range(1, length + 1)]
    found = [day for day in days if day.weekday() == weekday]
    if nth == 0:
        return found
    place = nth - 1 if nth > 0 else nth
    return [found[place]] if -len(found) <= place < len(found) else []
