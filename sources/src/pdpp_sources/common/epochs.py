"""Instants that programs write as numbers, each counted from an epoch of its own.

The years from 2000 to 2040 (of the epoch of 2001: from 2003 to 2030) lie in different ranges of
numbers whatever the epoch and the unit, so a number alone says which is meant, if it is a time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import msgspec

from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.times import rendered

_1601 = datetime(1601, 1, 1, tzinfo=UTC)
_1970 = datetime(1970, 1, 1, tzinfo=UTC)
_2001 = datetime(2001, 1, 1, tzinfo=UTC)
_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
# A column of such a name may hold instants: `created`, `last_visit_time`, `dateAdded`, `ts`.
_TIME_NAME = re.compile(
    r".*(?:time|date|stamp|created|modified|updated|accessed|added|visited|expires|expiry)"
    r"(?:[_ ]?(?:utc|gmt|local|remote|at|on|s|ms|us|ns|sec|seconds|millis|usec))?"
    r"|(?:.*_)?(?:at|on|ts|when)"
    r"|(?:date|time|created|modified|updated|last)(?:[A-Z_].*)?",
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Epoch(msgspec.Struct, frozen=True):
    """What a number counts, from when on.

    Shapes: `plausible` is the range of numbers that are taken for instants, the second not in it.
    """

    name: str
    words: str
    start: datetime
    per_second: int
    plausible: tuple[float, float]

    def instant(self, number: float) -> str:
        """The instant of a number. Raises: BadRecord."""
        try:
            if isinstance(number, int):
                seconds, remainder = divmod(number, self.per_second)
                span = timedelta(
                    seconds=seconds, microseconds=remainder * 1_000_000 // self.per_second
                )
            else:
                span = timedelta(seconds=number / self.per_second)
            return rendered(self.start + span)
        except (OverflowError, ValueError):
            raise BadRecord("bad_date", "the date of the entry is outside the calendar") from None


def _epoch(
    words: str, start: datetime, per_second: int, since: datetime = _FROM, until: datetime = _UNTIL
) -> Epoch:
    begin, end = ((instant - start).total_seconds() * per_second for instant in (since, until))
    name = f"{words.split()[0]} {start.year}"
    return Epoch(name, f"{words} since {start.year}", start, per_second, (begin, end))


_UNITS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
_YEARS_OF_2001 = (datetime(2003, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))
UNIX = {words: _epoch(words, _1970, unit) for words, unit in _UNITS.items()}
WEBKIT = _epoch("microseconds", _1601, 10**6)
APPLE = _epoch("seconds", _2001, 1, *_YEARS_OF_2001)
APPLE_NANOSECONDS = _epoch("nanoseconds", _2001, 10**9, *_YEARS_OF_2001)
EPOCHS = {epoch.name: epoch for epoch in (*UNIX.values(), WEBKIT, APPLE, APPLE_NANOSECONDS)}


def epoch_of(number: float) -> Epoch | None:
    """The epoch in whose plausible range a number lies; there is one at most."""
    for epoch in EPOCHS.values():
        begin, end = epoch.plausible
        if begin <= number < end:
            return epoch
    return None


def is_time_name(name: str) -> bool:
    """Whether a column is called as one that holds instants."""
    return bool(_TIME_NAME.fullmatch(_CAPITAL.sub("_", name.strip()).lower()))
