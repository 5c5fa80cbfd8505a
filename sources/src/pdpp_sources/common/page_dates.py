"""Dates of pages that platforms write for people: in any language, with letters for their zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

from dateparser.date import DateDataParser
from dateparser.timezone_parser import pop_tz_offset_from_string

from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.times import rendered

LONGEST_DATE_CHARS = 100
_HALF = r"(?:\s?([ap])\.?\s?m\b\.?)?"
_CLOCK = re.compile(rf"\b(\d{{1,2}}):(\d{{2}}):(\d{{2}}){_HALF}", re.IGNORECASE)
_SHORT_CLOCK = re.compile(rf"\b(\d{{1,2}}):(\d{{2}})(?::(\d{{2}}))?{_HALF}", re.IGNORECASE)
# Days before months where both are numbers: who puts the month first writes its name here.
_PARSER = DateDataParser(
    settings={
        "DATE_ORDER": "DMY",
        "PREFER_LOCALE_DATE_ORDER": False,
        "RETURN_AS_TIMEZONE_AWARE": True,
        "STRICT_PARSING": True,
        "TIMEZONE": "UTC",
    }
)


_IANA = re.compile(r"\s([A-Z][A-Za-z]+(?:/[A-Za-z_+-]+){1,2})\s*$")
# "At" before a clock, in languages of which the library lacks it. Another word there may say which
# half of the day it is.
_BEFORE_CLOCK = re.compile(r"\s(?:kello|kell|ob|om|u|у|в|στις|në|nang|pada|d\.)\s*$", re.IGNORECASE)
_LETTERS = re.compile(r"\s([A-Z]{2,4})\s*$")
_SCRIPTS = {
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "arabic": re.compile("[\u0600-\u06ff]"),
    "indian": re.compile("[\u0900-\u0dff]"),
    "chinese": re.compile("[\u4e00-\u9fff]"),
    "armenian": re.compile("[\u0530-\u058f]"),
}
# Letters that stand for several zones, by the script of the page; without a hint the most people's.
_DOUBLE_MEANINGS = {
    "IST": {"": "Asia/Kolkata", "hebrew": "Asia/Jerusalem", "irish": "Europe/Dublin"},
    "CST": {"": "America/Chicago", "chinese": "Asia/Shanghai", "cuban": "America/Havana"},
    "BST": {"": "Europe/London", "indian": "Asia/Dhaka"},
    "AST": {"": "America/Halifax", "arabic": "Asia/Riyadh"},
    "GST": {"": "Asia/Dubai", "southern": "Atlantic/South_Georgia"},
    "PST": {"": "America/Los_Angeles", "philippine": "Asia/Manila"},
    "AMT": {"": "America/Manaus", "armenian": "Asia/Yerevan"},
    "ADT": {"": "America/Halifax", "arabic": "Asia/Baghdad"},
    "WST": {"": "Australia/Perth", "samoan": "Pacific/Apia"},
}


def parse_page_date(words: str, zone: tzinfo = UTC, *, with_seconds: bool = True) -> str:
    """A date as a page for people writes it, in any language, with a time and mostly a zone.

    `zone` is the owner's: a time without a zone was written there, and of several zones with the
    same letters it is meant. Without seconds a time to the minute is one, too.

    Raises: BadRecord.
    """
    words, zone = _apart(words, zone)
    clock = (_CLOCK if with_seconds else _SHORT_CLOCK).search(words)
    if clock is None or len(words) > LONGEST_DATE_CHARS:
        raise _unknown()
    day, rest = words[: clock.start()], words[clock.end() :]
    midnight = _moment(f"{day}00:00:00{rest}", zone)
    if midnight is None:
        whole = _moment(words, zone)  # a word before the clock may say which half of the day it is
        if whole is not None:
            return rendered(whole)
        midnight = _moment(f"{_BEFORE_CLOCK.sub(' ', day)}00:00:00{rest}", zone)
        if midnight is None:
            raise _unknown()
    hour, minute, second, half = clock.groups()
    hours = int(hour) % 12 + 12 * (half in "pP") if half else int(hour)
    if hours > 23 or int(minute) > 59 or int(second or 0) > 59:
        raise _unknown()
    return rendered(
        midnight + timedelta(hours=hours, minutes=int(minute), seconds=int(second or 0))
    )


def _apart(words: str, zone: tzinfo) -> tuple[str, tzinfo]:
    """A date and the zone that is named behind it: `Asia/Kuala_Lumpur`; else the one given."""
    named = _IANA.search(words)
    if named is None:
        return words, zone
    try:
        return words[: named.start()], ZoneInfo(named[1])
    except (OSError, KeyError, ValueError):  # a folder of zones, or none
        return words, zone


@lru_cache(maxsize=4096)
def _moment(words: str, zone: tzinfo) -> datetime | None:
    """What words say; asked for the beginning of a day, since a page has many entries of each."""
    letters = _LETTERS.search(words)
    if letters is not None and letters.group(1) in _DOUBLE_MEANINGS:
        day = _PARSER.get_date_data(words[: letters.start()]).date_obj
        return day.replace(tzinfo=_meant(letters.group(1), words, day, zone)) if day else None
    clock, zone_name = pop_tz_offset_from_string(words)
    date = _PARSER.get_date_data(words).date_obj
    if date is None or zone_name is None:
        date = _PARSER.get_date_data(clock).date_obj
        return date.replace(tzinfo=zone_name or zone) if date else None
    return date


def _meant(letters: str, words: str, day: datetime, zone: tzinfo) -> tzinfo:
    """The zone that letters stand for: the owner's if it has them, else that of the language."""
    meanings = _DOUBLE_MEANINGS[letters]
    noon = day.replace(tzinfo=None, hour=12)
    if letters in (noon.replace(tzinfo=zone).tzname(), *_alike(zone)):
        return zone
    script = next((name for name, pattern in _SCRIPTS.items() if pattern.search(words)), "")
    return ZoneInfo(meanings.get(script, meanings[""]))


def _alike(zone: tzinfo) -> Iterator[str]:
    """The letters whose meanings name that zone, whatever a database calls it by."""
    key = getattr(zone, "key", None)
    for letters, meanings in _DOUBLE_MEANINGS.items():
        if key in meanings.values():
            yield letters


def _unknown() -> BadRecord:
    return BadRecord("bad_date", "the date of the entry is written in an unknown way")
