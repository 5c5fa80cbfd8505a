"""Time zones by the names that calendar programs give them.

A name is looked for where it means most: IANA's own names, zones that the file defines itself, the
names of Windows (CLDR's windowsZones, which `icalendar` carries), the words that Outlook shows for
them, and at last the distance from UTC that stands in the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from icalendar.timezone.windows_to_olson import WINDOWS_TO_OLSON

# Of Windows' names those that came after the table, and the words for places that are no cities.
_FURTHER = {
    "Alberta Standard Time": "America/Edmonton",
    "British Columbia Standard Time": "America/Vancouver",
    "Manitoba Standard Time": "America/Winnipeg",
    "tzone://Microsoft/Utc": "UTC",
}
_REGIONS = {
    "alaska": "America/Anchorage",
    "arizona": "America/Phoenix",
    "atlantic time": "America/Halifax",
    "central america": "America/Guatemala",
    "central time": "America/Chicago",
    "coordinated universal time": "UTC",
    "eastern time": "America/New_York",
    "easter island": "Pacific/Easter",
    "georgetown": "America/Guyana",
    "greenwich mean time": "Europe/London",
    "greenland": "America/Nuuk",
    "hawaii": "Pacific/Honolulu",
    "indiana": "America/Indiana/Indianapolis",
    "la paz": "America/La_Paz",
    "mountain time": "America/Denver",
    "new delhi": "Asia/Kolkata",
    "newfoundland": "America/St_Johns",
    "pacific time": "America/Los_Angeles",
    "saskatchewan": "America/Regina",
    "yukon": "America/Whitehorse",
    "beijing": "Asia/Shanghai",
    "osaka": "Asia/Tokyo",
    "abu dhabi": "Asia/Dubai",
    "chennai": "Asia/Kolkata",
    "bern": "Europe/Zurich",
    "edinburgh": "Europe/London",
    "canberra": "Australia/Sydney",
    "wellington": "Pacific/Auckland",
    "st. petersburg": "Europe/Moscow",
    "pretoria": "Africa/Johannesburg",
    "kyiv": "Europe/Kyiv",
}
_SHOWN = re.compile(r"\s*\((?:UTC|GMT)\s*([+-]\d{1,2}:?\d{2}|)\)\s*(.*)", re.IGNORECASE | re.DOTALL)
_OFFSET = re.compile(r"(?:^|UTC\s?|GMT\s?)([+-])(\d{1,2}):?(\d{2})?(?!\d)", re.IGNORECASE)
_FARTHEST = timedelta(hours=14)
_LONGEST_NAME = 200


def differs_from_iana(name: str, distances: Iterable[timedelta]) -> bool:
    """Whether a zone that a file defines is another than IANA's of that name.

    Later rules for summer time make no other zone, a distance from UTC that IANA's never had does.
    """
    zone = _iana(name.strip().strip('"').lstrip("/")[:_LONGEST_NAME])
    return zone is not None and not set(distances) <= _distances_of(zone)


@cache
def _distances_of(zone: tzinfo) -> frozenset[timedelta | None]:
    """How far a zone was from UTC since 1970, in January and July."""
    days = (datetime(y, m, 1) for y in range(1970, 2038) for m in (1, 7))  # noqa: DTZ001
    return frozenset(zone.utcoffset(day) for day in days)


def named_zone(name: str, defined: Mapping[str, tzinfo]) -> tzinfo | None:
    """The zone of that name; `defined` are those of the file."""
    name = name.strip().strip('"')[:_LONGEST_NAME]
    return _iana(name.lstrip("/")) or defined.get(name) or _known(name)


@cache
def _known(name: str) -> tzinfo | None:
    """A zone that Windows or Outlook calls so, or the distance from UTC in the name."""
    if (behind := _at_the_end(name)) is not None:
        return behind
    olson_name = {**WINDOWS_TO_OLSON, **_FURTHER}.get(name)
    if olson_name is not None:
        return _iana(olson_name)
    match = _SHOWN.fullmatch(name)
    if match is not None:
        return _shown(match.group(2)) or (_distant(match.group(1)) if match.group(1) else UTC)
    return _distant(name) or _iana(name.replace("-", "/", 1))  # US-Eastern


def _shown(cities: str) -> tzinfo | None:
    """The zone of the first place that is known, of those that Outlook lists for a zone."""
    for city in re.split(r"[,:;]|\(", cities.casefold()):
        key = city.strip(" )")
        zone_name = _REGIONS.get(key) or _cities().get(key)
        if zone_name is not None:
            return _iana(zone_name)
    return None


@cache
def _cities() -> dict[str, str]:
    """IANA's names by their city."""
    names = sorted(name for name in available_timezones() if "/" in name and "Etc/" not in name)
    return {name.rpartition("/")[2].replace("_", " ").casefold(): name for name in names}


def _distant(name: str) -> tzinfo | None:
    match = _OFFSET.search(name)
    if match is None:
        return None
    sign, hours, minutes = match.groups()
    distance = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if distance > _FARTHEST:
        return None
    return timezone(distance if sign == "+" else -distance)


def _at_the_end(name: str) -> tzinfo | None:
    """An IANA name behind a vendor's own words: `/mozilla.org/20050126_1/Europe/Berlin`."""
    parts = name.split("/")
    tails = ("/".join(parts[at:]) for at in range(1, len(parts) - 1))
    return next(filter(None, map(_iana, tails)), None)


def _iana(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, KeyError, OSError):
        return None
