"""Instants as the store keeps them: RFC 3339, UTC, with `Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord

DATE_ORDERS_TAKEN = {
    "dmy": message(
        "dates such as 06/04 may be day/month or month/day; this import read them as day/month"
    ),
    "mdy": message(
        "dates such as 06/04 may be day/month or month/day; this import read them as month/day"
    ),
}
"""What a report says of dates that may be either, by the order in which they were read."""
_DURATION = re.compile(
    r"P(?=.)(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,9}(?:\.\d{1,9})?)S)?)?"
)


class NotedZone(ZoneInfo):
    """A zone that notes whether a time without a zone was read in it."""

    was_used = False

    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        """The offset then, which only a time of this zone asks for."""
        self.was_used = self.was_used or dt is not None
        return super().utcoffset(dt)


def rendered(instant: datetime, zone: tzinfo = UTC) -> str:
    """An instant in UTC; one without a zone is read in `zone`.

    Raises: BadRecord, if it lies outside the calendar once moved to UTC.
    """
    try:
        aware = instant if instant.tzinfo else instant.replace(tzinfo=zone)
        moved = aware.astimezone(UTC)
    except (OverflowError, ValueError):
        raise BadRecord("bad_date", "the date of the entry is outside the calendar") from None
    digits = "milliseconds" if moved.microsecond else "seconds"
    return moved.isoformat(timespec=digits).replace("+00:00", "Z")


def from_epoch(seconds: float) -> str:
    """An instant counted in seconds from 1970. Raises: BadRecord."""
    try:
        return rendered(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, ValueError, OSError):
        raise BadRecord("bad_date", "the date of the entry is outside the calendar") from None


def from_iso(text: str, zone: tzinfo = UTC) -> str:
    """An ISO 8601 instant; one without a zone is read in `zone`. Raises: BadRecord."""
    try:
        return rendered(datetime.fromisoformat(text.strip()), zone)
    except ValueError:
        raise BadRecord("bad_date", "the date of the entry cannot be read") from None


def iso_seconds(text: str) -> float | None:
    """How long an ISO 8601 duration of days at most is: `PT1H2M3S` is 3723; None for others."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
