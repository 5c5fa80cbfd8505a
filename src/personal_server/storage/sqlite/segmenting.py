"""How the lines of a source fall into groups: stretches of lines, and the key of each.

Rule: no line needs a call-back.  Buckets that hold many lines are ranges of the index; others are
integer arithmetic within stretches of constant UTC offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from personal_server.domain.criteria import Granularity, Grouping
from personal_server.domain.values import (
    COMPARED_CODE_POINTS,
    DAY_NANOSECONDS,
    Comparable,
    ValueKind,
    bound,
)
from personal_server.storage.buckets import Calendar
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.layout import Column
from personal_server.storage.sqlite.figures import extreme
from personal_server.storage.sqlite.reading import Place, Reader

Key = Comparable | None
FAR_SLACK_NS = 50_000.0
# From so many lines per bucket on, a range of the index per bucket is the shorter way.
CROWDED = 30
_USUAL_DAYS = {
    Granularity.DAY: 1,
    Granularity.WEEK: 7,
    Granularity.MONTH: 30,
    Granularity.QUARTER: 91,
    Granularity.YEAR: 365,
}


@dataclass(frozen=True, slots=True)
class Segment:
    """Lines of one source, and how they fall into groups: `key_of` turns `sql` into the key."""

    place: Place
    sql: str
    where: Where
    key_of: Callable[[Any], Key] = lambda found: found


def value_of(reader: Reader, place: Place, column: Column) -> str:
    """The value of a column as it is equal: long strings are looked up whole."""
    name = f"r.{column.name}"
    if column.kind is not ValueKind.STRING:
        return name
    long = Where((f"length({name}) >= {COMPARED_CODE_POINTS}",))
    has_long = reader.value(place.compiler.select("1", long, " LIMIT 1"))
    return place.compiler.whole_string(column) if has_long else name


def segments(
    reader: Reader, place: Place, where: Where, count: int, grouping: Grouping
) -> Iterator[Segment]:
    """All matching lines of a source, `count` of them, each in one segment."""
    column = place.compiler.layout.column(grouping.field, grouping.kind)
    if column is None:
        yield Segment(place, "NULL", where)
    elif grouping.granularity is None:
        yield Segment(place, value_of(reader, place, column), where)
    else:
        calendar = Calendar(grouping.time_zone, grouping.granularity)
        timed = _Timed(reader, place, column, where, calendar)
        yield Segment(place, "NULL", where & Where((f"{timed.name} IS NULL",)))
        yield from timed.segments(count, _USUAL_DAYS.get(grouping.granularity))


class _Timed:
    """Lines of a source by the time buckets of a column."""

    def __init__(
        self, reader: Reader, place: Place, column: Column, where: Where, calendar: Calendar
    ) -> None:
        self._reader = reader
        self._place = place
        self._column = column
        self._where = where
        self._calendar = calendar
        self.name = f"r.{column.name}"

    def segments(self, count: int, bucket_days: int | None) -> Iterator[Segment]:
        """By ranges of crowded buckets, or by arithmetic."""
        low = self._extreme(self._where)
        if low is None:
            return
        is_day = self._column.kind is ValueKind.DATE
        if bucket_days is not None:
            high = int(self._extreme(self._where, highest=True))
            days = (high - int(low)) // (1 if is_day else DAY_NANOSECONDS)
            if count > CROWDED * (days // bucket_days + 1):
                yield from self._ranges(low)
                return
        if is_day:
            present = self._where & Where((f"{self.name} IS NOT NULL",))
            yield Segment(self._place, self.name, present, self._calendar.day_start)
        else:
            yield from self._periods(low)

    def _ranges(self, low: Any) -> Iterator[Segment]:
        """One bucket after the other; empty ones are passed over."""
        calendar, is_day = self._calendar, self._column.kind is ValueKind.DATE
        while low is not None:
            day = low if is_day else calendar.local_day(int(low))
            start = calendar.day_start(day)
            since = calendar.first_day(day) if is_day else start
            until = calendar.next_day(day) if is_day else calendar.day_end(day)
            yield Segment(self._place, "NULL", self._between(since, until), _constant(start))
            low = self._extreme(self._from(until))

    def _periods(self, low: Any) -> Iterator[Segment]:
        """Stretches of constant offset, their lines by the number of their local unit."""
        while low is not None:
            since, until = self._calendar.period(int(low))
            yield self._period(int(low), since, until)
            low = self._extreme(self._from(until))

    def _period(self, inside_ns: int, since: int, until: int) -> Segment:
        """`inside_ns` is the first instant of the stretch, so that no number is negative."""
        calendar = self._calendar
        unit, offset = calendar.unit_ns, calendar.offset_ns(inside_ns)
        base_unit = (inside_ns + offset) // unit
        base = base_unit * unit - offset

        def start(found: int) -> int:
            if not calendar.is_fine:
                return calendar.day_start(base_unit + found)
            begun = base + found * unit
            return begun if begun >= since else calendar.fine_start(base_unit + found, since)

        # instants beyond 64 bits are doubles, true to some microseconds: they are not cut short
        slack = "" if -(2**63) <= inside_ns < 2**63 else f" + {FAR_SLACK_NS}"
        divided = f"CAST(({self.name} - {bound(base)}{slack}) / {bound(unit)} AS INTEGER)"
        return Segment(self._place, divided, self._between(since, until), start)

    def _between(self, since: int, until: int) -> Where:
        bounds = (f"{self.name} >= ?", f"{self.name} < ?")
        return self._where.yielding(self.name) & Where(bounds, (bound(since), bound(until)))

    def _from(self, since: int) -> Where:
        first = Where((f"{self.name} >= ?",), (bound(since),))
        return self._where.yielding(self.name, ">") & first

    def _extreme(self, where: Where, *, highest: bool = False) -> Any:
        return extreme(self._reader, self._place, self._column, where, highest=highest)


def _constant(start: int) -> Callable[[Any], Key]:
    return lambda _: start
