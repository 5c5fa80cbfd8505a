"""Time buckets of a zone: where they start, exactly, across changes of the clock.

Rule: a bucket is named by its start (UTC ns).  Minutes and hours are stretches of constant UTC
offset, so that a repeated local hour gives two buckets; days and coarser are local calendar days.
Source: docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from pdpp_kernel.aggregations import Granularity
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS, ValueKind

FINE_UNITS = {
    Granularity.MINUTE: 60 * NANOSECONDS,
    Granularity.HOUR: 3_600 * NANOSECONDS,
    Granularity.HOUR_OF_DAY: 3_600 * NANOSECONDS,
}
# After how many units a bucket comes round again, and where 1970 began: at 0 h on a Thursday.
_TURNS = {Granularity.HOUR_OF_DAY: (24, 0), Granularity.WEEKDAY: (7, 3)}
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal() - _EPOCH_ORDINAL
# So many days after its first day a bucket is over, and the next is not.
_LONGEST_DAYS = {
    Granularity.DAY: 1,
    Granularity.WEEK: 7,
    Granularity.MONTH: 31,
    Granularity.QUARTER: 92,
    Granularity.YEAR: 366,
}
# Instants near the ends of the calendar are bucketed in UTC: no zone moves them out of it.
_FIRST_YEAR, _LAST_YEAR = 2, 9998
_FIRST_NS = (date(_FIRST_YEAR, 1, 1).toordinal() - _EPOCH_ORDINAL) * DAY_NANOSECONDS
_LAST_NS = (date(_LAST_YEAR, 1, 1).toordinal() - _EPOCH_ORDINAL) * DAY_NANOSECONDS
_BEYOND_NS = 2**70


class Calendar:
    """One time zone and one granularity."""

    def __init__(self, time_zone: str, granularity: Granularity) -> None:
        self._zone = ZoneInfo(time_zone)
        self._granularity = granularity
        self.unit_ns = FINE_UNITS.get(granularity, DAY_NANOSECONDS)
        self.is_fine = granularity in FINE_UNITS

    def key(self, point: int, kind: ValueKind) -> int:
        """The bucket of a comparable (instant in ns, or day number): its start, or its turn."""
        if not self._granularity.is_cyclic:
            return self.start(point, kind)
        is_day = kind is ValueKind.DATE
        return self.turn(point if is_day else (point + self.offset_ns(point)) // self.unit_ns)

    @property
    def is_utc(self) -> bool:
        """Whether its days are those of UTC."""
        return self._zone.key == "UTC"

    @property
    def turns(self) -> int | None:
        """After how many units a bucket comes round again, if it does."""
        return _TURNS[self._granularity][0] if self._granularity.is_cyclic else None

    def turn(self, unit: int) -> int:
        """The hour of the day, or the day of the week from Monday, of a local unit."""
        count, first = _TURNS[self._granularity]
        return (unit + first) % count

    def start(self, point: int, kind: ValueKind) -> int:
        """The start of the bucket of a comparable (instant in ns, or day number)."""
        if kind is ValueKind.DATE:
            return self.day_start(point)
        offset = self.offset_ns(point)
        if not self.is_fine:
            return self.day_start(self.local_day(point))
        return self.fine_start((point + offset) // self.unit_ns, point)

    def fine_start(self, unit: int, inside_ns: int) -> int:
        """The start of the local minute or hour `unit` that holds the instant `inside_ns`."""
        offset = self.offset_ns(inside_ns)
        start = unit * self.unit_ns - offset
        if self.offset_ns(start) == offset:
            return start
        return self._transition(start, inside_ns)

    def day_start(self, day: int) -> int:
        """The start of the calendar bucket of a local day (days since 1970)."""
        return self.midnight(self._first_day(day))

    def local_day(self, instant_ns: int) -> int:
        """The calendar day of an instant in the zone."""
        return (instant_ns + self.offset_ns(instant_ns)) // DAY_NANOSECONDS

    def first_day(self, day: int) -> int:
        """The first day of a day's bucket."""
        return self._first_day(day)

    def next_day(self, day: int) -> int:
        """The first day after a day's bucket."""
        later = self._first_day(day) + _LONGEST_DAYS[self._granularity]
        return later if later > _LAST_DAY else self._first_day(later)

    def day_end(self, day: int) -> int:
        """The instant at which the bucket of a local day ends."""
        return self.midnight(self.next_day(day))

    def offset_ns(self, instant_ns: int) -> int:
        """What the zone adds to UTC at an instant."""
        if not _FIRST_NS <= instant_ns < _LAST_NS:
            return 0
        moment = datetime.fromtimestamp(instant_ns // NANOSECONDS, UTC).astimezone(self._zone)
        offset = moment.utcoffset()
        assert offset is not None  # noqa: S101  # the zone is never naive
        return (offset.days * 86_400 + offset.seconds) * NANOSECONDS

    def period(self, instant_ns: int) -> tuple[int, int]:
        """A stretch [from, to) around an instant in which the offset stays the same.

        Differences of two instants of a stretch fit 64 bits where the instants do.
        """
        since, until = self._offset_period(instant_ns)
        edges = (-_BEYOND_NS, -(2**63), 0, 2**63, _BEYOND_NS)
        index = next(i for i, edge in enumerate(edges) if instant_ns < edge)
        return (max(since, edges[index - 1]), min(until, edges[index]))

    def _offset_period(self, instant_ns: int) -> tuple[int, int]:
        if self.is_utc:
            return (-_BEYOND_NS, _BEYOND_NS)
        if instant_ns < _FIRST_NS:
            return (-_BEYOND_NS, _FIRST_NS)
        if instant_ns >= _LAST_NS:
            return (_LAST_NS, _BEYOND_NS)
        year = datetime.fromtimestamp(instant_ns // NANOSECONDS, UTC).year
        edges = _edges(self._zone.key, year)
        index = next(i for i, edge in enumerate(edges) if instant_ns < edge)
        return (edges[index - 1], edges[index])

    def year_edges(self, year: int) -> tuple[int, ...]:
        """The year's ends and every clock change between them."""
        days = range(date(year, 1, 1).toordinal(), date(year + 1, 1, 1).toordinal())
        at = [(day - _EPOCH_ORDINAL) * DAY_NANOSECONDS for day in (*days, days[-1] + 1)]
        return (at[0], *self._changes(at), at[-1])

    def _changes(self, at: list[int]) -> Iterator[int]:
        before = self.offset_ns(at[0])
        for low, high in pairwise(at):
            after = self.offset_ns(high)
            if after != before:
                edge = self._transition(low, high)
                if edge < at[-1]:
                    yield edge
            before = after

    def _transition(self, low: int, high: int) -> int:
        """The first second in (low, high] at which the offset of `high` holds."""
        offset = self.offset_ns(high)
        low_s, high_s = low // NANOSECONDS, -(-high // NANOSECONDS)
        while high_s - low_s > 1:
            middle = (low_s + high_s) // 2
            if self.offset_ns(middle * NANOSECONDS) == offset:
                high_s = middle
            else:
                low_s = middle
        return high_s * NANOSECONDS

    def _first_day(self, day: int) -> int:
        first_day = date.fromordinal(day + _EPOCH_ORDINAL)
        match self._granularity:
            case Granularity.WEEK:
                return max(day - first_day.weekday(), 1 - _EPOCH_ORDINAL)
            case Granularity.MONTH:
                first = first_day.replace(day=1)
            case Granularity.QUARTER:
                first = first_day.replace(month=(first_day.month - 1) // 3 * 3 + 1, day=1)
            case Granularity.YEAR:
                first = first_day.replace(month=1, day=1)
            case _:
                return day
        return first.toordinal() - _EPOCH_ORDINAL

    def midnight(self, day: int) -> int:
        """The instant at which a local day begins."""
        midnight = day * DAY_NANOSECONDS
        if self.is_utc or not _FIRST_NS <= midnight < _LAST_NS:
            return midnight
        date_of_day = date.fromordinal(day + _EPOCH_ORDINAL)
        local = datetime(date_of_day.year, date_of_day.month, date_of_day.day, tzinfo=self._zone)
        return int(local.astimezone(UTC).timestamp()) * NANOSECONDS


@lru_cache(maxsize=2_048)
def _edges(time_zone: str, year: int) -> tuple[int, ...]:
    return Calendar(time_zone, Granularity.DAY).year_edges(year)
