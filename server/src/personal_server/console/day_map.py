"""A year as a map of its days: a column a week, the darker the more records.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import msgspec

from pdpp_kernel.texts import Date, Text, counted, message

CELL, GAP = 12, 2
MAP_HEIGHT = 7 * (CELL + GAP)
LEVELS = 4
_EPOCH = date(1970, 1, 1).toordinal()


class DayCell(msgspec.Struct, frozen=True):
    """A day in the coordinates of the map; `level` is 0 where it has no records, at most 4."""

    day: str
    number: int
    x: int
    y: int
    level: int
    count: int
    words: Text


class MonthRow(msgspec.Struct, frozen=True):
    """A month of the table beside the map, and where its name stands above the map."""

    name: Date
    short_name: Date
    x: int
    count: int
    days: tuple[DayCell, ...]

    @property
    def most(self) -> DayCell | None:
        """The first of its days with the most records."""
        return max(self.days, key=lambda cell: cell.count) if self.count else None


class DayMap(msgspec.Struct, frozen=True):
    """A year."""

    year: int
    width: int
    months: tuple[MonthRow, ...]
    total: int

    @property
    def height(self) -> int:
        """With room for the names of months."""
        return MAP_HEIGHT + 16


def day_map(year: int, counts: Mapping[int, int]) -> DayMap:
    """The map of a year.  Shapes: `counts` by the number of a day since 1970."""
    first = date(year, 1, 1)
    bounds = _bounds(sorted(count for count in counts.values() if count))
    cells: dict[int, list[DayCell]] = {month: [] for month in range(1, 13)}
    length = 366 if _is_leap(year) else 365
    for index in range(length):
        day = first + timedelta(days=index)
        column, row = divmod(index + first.weekday(), 7)
        count = counts.get(day.toordinal() - _EPOCH, 0)
        words = message("%(day)s: %(records)s", day=Date(day), records=counted(count, "record"))
        x, y = column * (CELL + GAP), row * (CELL + GAP)
        level = sum(count > bound for bound in bounds) if count else 0
        cells[day.month].append(DayCell(day.isoformat(), day.day, x, y, level, count, words))
    months = tuple(
        MonthRow(
            Date(date(year, month, 1), "month"),
            Date(date(year, month, 1), "short_month"),
            next((cell.x for cell in days if cell.y == 0), days[0].x),
            sum(cell.count for cell in days),
            tuple(days),
        )
        for month, days in cells.items()
    )
    columns = (length + first.weekday() + 6) // 7
    return DayMap(year, columns * (CELL + GAP), months, sum(month.count for month in months))


def _bounds(counts: Sequence[int]) -> tuple[int, ...]:
    """What a day has to exceed for each level: quarters of the days that have records."""
    if not counts:
        return (0,)
    return (0, *(counts[len(counts) * quarter // LEVELS] for quarter in range(1, LEVELS)))


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
