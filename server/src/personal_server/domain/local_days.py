"""Days of a time zone: when they begin, which one an instant lies in, what its clocks say.

Rule: days follow each other without a gap, and each begins where the one before it ends; a day that
a zone left out (when it moved over the date line) is over before it begins.
Source: docs/contract/resource-server.md 7.3, 7.9.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from pdpp_kernel.values import NANOSECONDS

UTC_NAMES = frozenset({"UTC", "Etc/UTC"})
_EPOCH = date(1970, 1, 1).toordinal()
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}(?::\d{2})?)(?:\.(\d{1,9})\d*)?\Z")
# Nearer to the ends of the calendar a zone could leave it.
_FIRST, _LAST = date(2, 1, 1).toordinal() - _EPOCH, date(9998, 12, 31).toordinal() - _EPOCH


class LocalDays:
    """The days of one zone, each by its number since 1970-01-01.  Instants are UTC nanoseconds."""

    def __init__(self, time_zone: str) -> None:
        self._zone = ZoneInfo(time_zone)

    def start(self, day: int) -> int:
        """When a day begins; each day a little later than the one before it."""
        begun = self._midnight(day)
        return begun - 1 if self._midnight(day + 1) == begun else begun

    def day_of(self, instant_ns: int) -> int:
        """The last day that has begun by then."""
        day = self.local(instant_ns).toordinal() - _EPOCH
        while self.start(day) > instant_ns:
            day -= 1
        while self.start(day + 1) <= instant_ns:
            day += 1
        return day

    def day_from(self, instant_ns: int) -> int:
        """The first day that begins then or later."""
        day = self.day_of(instant_ns)
        return day if self.start(day) == instant_ns else day + 1

    def local(self, instant_ns: int) -> datetime:
        """What clocks say at an instant, to the microsecond."""
        second = min(max(instant_ns // NANOSECONDS, _FIRST * 86_400), _LAST * 86_400)
        moment = _BEGINNING + timedelta(seconds=second)
        return moment.astimezone(self._zone)

    def instant(self, text: str, *, last: bool = False) -> int | None:
        """When clocks say this, such as `2026-03-08T02:30`; `None` where it is no local time.

        Of a time that comes twice the first, or the last; of one that clocks pass over, what they
        say with the rule before it, or the one after, whichever is earlier (`last`: later).
        """
        found = _LOCAL.match(text)
        if found is None:
            return None
        day, clock, fraction = found.groups()
        try:
            moment = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=self._zone)
            both = [_seconds(moment.replace(fold=fold)) for fold in (0, 1)]
        except (ValueError, OverflowError):
            return None
        second = max(both) if last else min(both)
        return second * NANOSECONDS + int((fraction or "").ljust(9, "0"))

    def _midnight(self, day: int) -> int:
        inside = min(max(day, _FIRST), _LAST)
        found = date.fromordinal(inside + _EPOCH)
        local = datetime(found.year, found.month, found.day, tzinfo=self._zone)
        return (_seconds(local) + (day - inside) * 86_400) * NANOSECONDS


def _seconds(moment: datetime) -> int:
    return int((moment.astimezone(UTC) - _BEGINNING).total_seconds())


@lru_cache(maxsize=16)
def local_days(time_zone: str) -> LocalDays:
    """The days of a zone, by its IANA name."""
    return LocalDays(time_zone)
