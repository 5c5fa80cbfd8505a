"""Dates as a page for people writes them, in any language: `dateparser` knows the words."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

from dateparser.date import DateDataParser

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
    midnight = _midnight(f"{words[: clock.start()]}00:00:00{words[clock.end() :]}")
    hour, minute, second, half = clock.groups()
    hours = int(hour) % 12 + 12 * (half in "pP") if half else int(hour)
    if midnight is None or hours > 23 or int(minute) > 59 or int(second) > 59:
        raise _unknown()
    return rendered(midnight + timedelta(hours=hours, minutes=int(minute), seconds=int(second)))


@lru_cache(maxsize=4096)
def _midnight(words: str) -> datetime | None:
    """The beginning of a day in the zone it names; a page has many entries of each day."""
    return _PARSER.get_date_data(words).date_obj


def _unknown() -> BadRecord:
    return BadRecord("bad_date", "its date is written in a way that is not known")
