"""Days and instants as programs write them in cells.

A cell may say by itself what it means (`2022/12/30`, `5. März 2023`, `Thu, 05 Jan 2023 10:11:12
+0000`), or only beside the others of its column (`05/01/2023`).  Each form has a name of its own,
so that a column can ask which of them all its cells fit.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo

import msgspec

from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.times import rendered

# The forms: what a cell of each is, a day or an instant.  `day` and `month` say what comes first.
DAY_FORMS = {
    "yyyymmdd": "date",
    "yyyymmddhhmmss": "date-time",
    "date": "date",
    "day.month.": "date",
    "day/month": "date",
    "month/day": "date",
    "day-month": "date",
    "month-day": "date",
    "date-time": "date-time",
    "day.month. time": "date-time",
    "day/month time": "date-time",
    "month/day time": "date-time",
    "day-month time": "date-time",
    "month-day time": "date-time",
}
DAY_FIRST = frozenset({"day/month", "day-month", "day/month time", "day-month time"})
MONTH_FIRST = frozenset({"month/day", "month-day", "month/day time", "month-day time"})

# English, German, French, Spanish, Portuguese, Italian, Dutch, Russian; a month of Chinese,
# Japanese or Korean is a number with a sign behind it.
_MONTH_WORDS = (
    "january jan januar jänner janvier janv enero ene janeiro gennaio gen januari январь января"
    " янв",
    "february feb februar février févr fév febrero fevereiro fev febbraio februari февраль февраля"
    " фев февр",
    "march mar märz mär mrz mars marzo março maart mrt март марта мар",
    "april apr avril avr abril abr aprile апрель апреля апр",
    "may mai mayo maio maggio mag mei май мая",
    "june jun juni juin junio junho giugno giu июнь июня июн",
    "july jul juli juillet juil julio julho luglio lug июль июля июл",
    "august aug août aout agosto ago augustus август августа авг",
    "september sept sep septembre septiembre setiembre setembro set settembre сентябрь сентября"
    " сент сен",
    "october oct oktober okt octobre octubre outubro out ottobre ott октябрь октября окт",
    "november nov novembre noviembre novembro ноябрь ноября нояб ноя",
    "december dec dezember dez décembre déc diciembre dic dezembro dicembre декабрь декабря дек",
)
MONTHS = {word: n for n, words in enumerate(_MONTH_WORDS, 1) for word in words.split()}
_WEEKDAY_WORDS = (
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri"
    " sat sun montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag mo di mi do fr"
    " sa so lundi mardi mercredi jeudi vendredi samedi dimanche lun mar mer jeu ven sam dim lunes"
    " martes miércoles jueves viernes sábado domingo mié jue vie sáb dom segunda-feira terça-feira"
    " quarta-feira quinta-feira sexta-feira seg ter qua qui sex lunedì martedì mercoledì giovedì"
    " venerdì sabato domenica gio sab maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"
    " ma wo vr za zo понедельник вторник среда четверг пятница суббота воскресенье пн вт ср чт пт"
    " сб вс"
)
_WEEKDAYS = frozenset(_WEEKDAY_WORDS.split())
# Zones whose letters mean one thing; of others (CST, IST, BST) the cell stays text.
_ZONES = {
    **dict.fromkeys(("Z", "UTC", "GMT", "UT", "WET"), 0),
    **dict.fromkeys(("CET", "MEZ", "WEST"), 60),
    **dict.fromkeys(("CEST", "MESZ", "EET"), 120),
    "EEST": 180,
    "JST": 540,
    "EST": -300,
    "EDT": -240,
    "CDT": -300,
    "MST": -420,
    "MDT": -360,
    "PST": -480,
    "PDT": -420,
}
_WORD = r"[^\W\d_]{2,14}(?:-feira)?"
_CLOCK = (
    r"(?P<h>\d{1,2}):(?P<min>\d{2})(?::(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?)?"
    r"(?:\s?(?P<half>[AaPp])\.?\s?[Mm]\.?)?"
    r"(?:\s?(?P<zone>(?:UTC|GMT)?[+-]\d{2}:?\d{2}(?::?00)?|(?:UTC|GMT)[+-]\d{1,2}|[A-Z]{1,4}))?"
    r"(?:\s(?P<named>[A-Z]{3,4}))?(?:\s?\([^()]{1,60}\))?"
)
_THEN = r"(?:(?:,?\s+(?:at|um|à|a\slas|alle|às|om|в)\s+|\s?,\s*|T|\s+|\s-\s)" + _CLOCK + r")?"
_ORDINAL = r"(?:\.|st|nd|rd|th|er|º|ª)?"
_YEAR = r"(?P<y>\d{4})(?:\s?(?:г\.?|年|년))?"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"(?P<y>\d{{4}})(?P<by>[-/.])\s?(?P<m>\d{{1,2}})(?P=by)\s?(?P<d>\d{{1,2}})\.?{_THEN}",
        rf"(?P<y>\d{{4}})\s?[年년]\s?(?P<m>\d{{1,2}})\s?[月월]\s?(?P<d>\d{{1,2}})\s?[日일]{_THEN}",
        rf"(?P<d>\d{{1,2}}){_ORDINAL}(?:\s+(?:de\s+|of\s+)?|\s?[-/]\s?)(?P<word>{_WORD})\.?"
        rf"(?:,?\s+(?:de\s+|del\s+)?|\s?[-/]\s?)(?:{_YEAR}|'?(?P<short>\d{{2}})){_THEN}",
        r"(?P<d>\d{1,2})(?P<word>[^\W\d_]{3})(?P<y>\d{4})",
        rf"(?P<word>{_WORD})\.?\s+(?P<d>\d{{1,2}}){_ORDINAL},?\s+{_YEAR}{_THEN}",
        rf"(?P<word>{_WORD})\.?\s+(?P<d>\d{{1,2}})\s+{_CLOCK}\s+(?P<y>\d{{4}})",
        rf"(?P<y>\d{{4}})[\s/-](?P<word>{_WORD})[\s/-](?P<d>\d{{1,2}}){_THEN}",
        r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})[T ](?P<h>\d{2}):?(?P<min>\d{2})(?::?(?P<s>\d{2}))?"
        r"(?P<zone>Z|[+-]\d{2}:?\d{2})?",
    )
)
_ORDERED = re.compile(
    rf"(?P<one>\d{{1,2}})(?P<by>[./-])\s?(?P<two>\d{{1,2}})(?P=by)\s?"
    rf"(?:(?P<y>\d{{4}})|(?P<short>\d{{2}}))\.?{_THEN}"
)
_SIGNS = {".": "day.month.", "/": "day/month", "-": "day-month"}
_COMPACT = {8: ("yyyymmdd", "%Y%m%d"), 14: ("yyyymmddhhmmss", "%Y%m%d%H%M%S")}
_COMPACT_YEARS = range(1900, 2100)
_LEADING = re.compile(r"([^\W\d_]{2,13}(?:-feira)?)(?:\.?,|\.)?\s+")
_LONGEST_CHARS = 80
_SHORTEST_CHARS = 6
_PIVOT_YEAR = 69  # a year of two digits is one of 1969 to 2068, as POSIX has it


class _Stamp(msgspec.Struct, frozen=True):
    """What a cell says: its year, two numbers in an order that is known or not, its clock.

    Shapes: `sign` is what stands between the numbers where their order is not known, else empty;
        then `one` is the month and `two` the day. `offset` is None where no zone is named.
    """

    sign: str
    year: int
    one: int
    two: int
    clock: time | None = None
    offset: timezone | None = None


def day_forms(text: str) -> set[str]:
    """The names of all forms that a cell fits; a day is an instant, too, its midnight."""
    if not _SHORTEST_CHARS <= len(text) <= _LONGEST_CHARS:
        return set()
    if text.isdecimal():
        form = _COMPACT.get(len(text))
        return {form[0]} if form and _compact(text, form[1]) else set()
    stamp = _stamp(text)
    if stamp is None:
        return set()
    if not stamp.sign:
        names = {"date", "date-time"} if _is_day(stamp, stamp.one, stamp.two) else set[str]()
    else:
        name = _SIGNS[stamp.sign]
        names = {name, f"{name} time"} if _is_day(stamp, stamp.two, stamp.one) else set[str]()
        if stamp.sign != "." and _is_day(stamp, stamp.one, stamp.two):
            turned = f"month{stamp.sign}day"
            names |= {turned, f"{turned} time"}
    if stamp.clock is not None:
        names = {name for name in names if DAY_FORMS[name] == "date-time"}
    return names


def day_value(text: str, form: str, zone: tzinfo) -> str:
    """A cell of that form as a day or an instant; one without a zone is read in `zone`.

    Raises: BadRecord.
    """
    if text.isdecimal():
        compact_day = _compact(text, dict(_COMPACT.values()).get(form, ""))
        if compact_day is not None:
            return (
                compact_day.date().isoformat()
                if form == "yyyymmdd"
                else rendered(compact_day, zone)
            )
    stamp = _stamp(text)
    if stamp is None or text.isdecimal():
        raise BadRecord("bad_date", "the date of the entry cannot be read")
    day_first = bool(stamp.sign) and not form.startswith("month")
    month, day = (stamp.two, stamp.one) if day_first else (stamp.one, stamp.two)
    try:
        found_day = date(stamp.year, month, day)
    except ValueError:
        raise BadRecord("bad_date", "the date of the entry cannot be read") from None
    if DAY_FORMS[form] == "date":
        return found_day.isoformat()
    instant = datetime.combine(found_day, stamp.clock or time(), stamp.offset)
    return rendered(instant, zone)


def _compact(text: str, form: str) -> datetime | None:
    """A day or instant of digits alone, within two centuries; None for any other number."""
    try:
        moment = datetime.strptime(text, form)  # noqa: DTZ007  # it names no zone
    except ValueError:
        return None
    return moment if moment.year in _COMPACT_YEARS else None


def _is_day(stamp: _Stamp, month: int, day: int) -> bool:
    try:
        date(stamp.year, month, day)
    except ValueError:
        return False
    return True


def _stamp(text: str) -> _Stamp | None:
    """What a cell says, a weekday before it left out."""
    if not any(map(str.isdecimal, text)):
        return None
    leading = _LEADING.match(text)
    if leading and leading[1].lower() in _WEEKDAYS:
        time_of_day = _stamp_of(text[leading.end() :])
        return time_of_day or _stamp_of(text)  # `mar. 5` is a Tuesday or March
    return _stamp_of(text)


def _stamp_of(text: str) -> _Stamp | None:
    if text[:1].isdecimal() and (match := _ORDERED.fullmatch(text)):
        return _built(match, match["by"], int(match["one"]), int(match["two"]))
    for form in _FORMS:
        if match := form.fullmatch(text):
            parts = match.groupdict()
            word = parts.get("word")
            month = MONTHS.get(word.lower()) if word else int(parts["m"] or 0)
            if month is not None:
                return _built(match, "", month, int(parts["d"] or 0))
    return None


def _built(match: re.Match[str], sign: str, one: int, two: int) -> _Stamp | None:
    parts = match.groupdict()
    short = parts.get("short")
    year = int(parts["y"] or 0) if short is None else _full_year(int(short))
    if parts.get("h") is None:
        return _Stamp(sign, year, one, two)
    offset = _offset(parts.get("zone"), parts.get("named"))
    clock = _clock(parts)
    if clock is None or offset is _UNKNOWN:
        return None
    return _Stamp(sign, year, one, two, clock, offset if isinstance(offset, timezone) else None)


def _full_year(short: int) -> int:
    return (1900 if short >= _PIVOT_YEAR else 2000) + short


def _clock(parts: dict[str, str | None]) -> time | None:
    hour, half = int(parts["h"] or 0), (parts.get("half") or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "p" else 0)
    microseconds = int((parts.get("f") or "0")[:6].ljust(6, "0"))
    try:
        return time(hour, int(parts["min"] or 0), int(parts.get("s") or 0), microseconds)
    except ValueError:
        return None


_UNKNOWN = object()


def _offset(zone: str | None, zone_name: str | None) -> timezone | object | None:
    """The zone that a cell names: none, one, or one whose letters mean several (`_UNKNOWN`)."""
    if not zone:
        return None
    digits = zone.removeprefix("UTC").removeprefix("GMT")
    if digits[:1] in ("+", "-"):
        hours, minutes = int(digits[1:3].rstrip(":")), int(digits[3:].replace(":", "")[:2] or 0)
        span = timedelta(hours=hours, minutes=minutes)
        if hours > 23 or minutes > 59:
            return _UNKNOWN
        return timezone(-span if digits[0] == "-" else span)
    minutes_east = _ZONES.get(zone)
    if minutes_east is None or zone_name is not None:
        return _UNKNOWN
    return timezone(timedelta(minutes=minutes_east)) if minutes_east else UTC
