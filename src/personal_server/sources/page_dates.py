"""Dates as a page for people writes them, in any language: `dateparser` knows the words."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from dateparser.date import DateDataParser
from dateparser.timezone_parser import pop_tz_offset_from_string

from personal_server.sources.errors import BadRecord
from personal_server.sources.times import rendered

LONGEST_DATE_CHARS = 100
_CLOCK = re.compile(r"\b(\d{1,2}):(\d{2}):(\d{2})(?:\s?([ap])\.?\s?m\b\.?)?", re.IGNORECASE)
_PARSER = DateDataParser(
    settings={
        "DATE_ORDER": "DMY",
        "PREFER_LOCALE_DATE_ORDER": False,
        "RETURN_AS_TIMEZONE_AWARE": True,
        "STRICT_PARSING": True,
        "TIMEZONE": "UTC",
    }
)
"""Days before months where both are numbers: who puts the month first writes its name here."""


def is_page_date(words: str) -> bool:
    """Whether words may be a date with a time."""
    return len(words) <= LONGEST_DATE_CHARS and bool(_CLOCK.search(words))


def parse_page_date(words: str) -> str:
    """An instant written with a time and, mostly, a zone. Raises: BadRecord."""
    clock = _CLOCK.search(words)
    if clock is None or len(words) > LONGEST_DATE_CHARS:
        raise _unknown()
    midnight = _moment(f"{words[: clock.start()]}00:00:00{words[clock.end() :]}")
    if midnight is None:
        whole = _moment(words)
        if whole is None:
            raise _unknown()
        return rendered(whole)
    hour, minute, second, half = clock.groups()
    hours = int(hour) % 12 + 12 * (half in "pP") if half else int(hour)
    if hours > 23 or int(minute) > 59 or int(second) > 59:
        raise _unknown()
    return rendered(midnight + timedelta(hours=hours, minutes=int(minute), seconds=int(second)))


@lru_cache(maxsize=4096)
def _moment(words: str) -> datetime | None:
    """What words say; asked for the beginning of a day, since a page has many entries of each."""
    found = _PARSER.get_date_data(words).date_obj
    if found is None:
        clock, zone = pop_tz_offset_from_string(words)
        found = _PARSER.get_date_data(clock).date_obj
        return found.replace(tzinfo=zone) if found else None
    return found


def _unknown() -> BadRecord:
    return BadRecord("bad_date", "its date is written in a way that is not known")
