"""One event or task of a calendar, asked for its properties; those it cannot say are None."""

from __future__ import annotations

import re
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import MAXYEAR, date, datetime, time, timedelta, tzinfo
from itertools import islice
from typing import Any, cast

from dateutil.rrule import rrulestr
from icalendar import Component, Event, Todo
from icalendar.error import BrokenCalendarProperty, GloballyUniqueTZIDGuessed

from personal_server.domain.source_item import Data, stable_id
from personal_server.sources.common.errors import BadRecord
from personal_server.sources.common.text import decoded, one_line, or_none, printable
from personal_server.sources.common.times import rendered

Start = datetime | date
ZoneOf = Callable[[str | None], tzinfo]
MOST_STARTS = 40_000
MOST_SLOTS = 2_000
FAULTS = (ValueError, KeyError, TypeError, AttributeError, IndexError, LookupError, OverflowError)
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_OF_TIME = ("BYHOUR", "BYMINUTE", "BYSECOND")
_ANY = datetime(2024, 1, 1)  # noqa: DTZ001 (wall time)
# Dates and weekdays come again after so long. dateutil looks for a day until the year 9999, so a
# rule is asked in the last cycle: one that never holds ends soon.
_CYCLE_YEARS = 400
_ALARM_BEGINS = re.compile(r"^BEGIN:VALARM\s", re.MULTILINE | re.IGNORECASE)
_ALARM_ENDS = re.compile(r"^END:VALARM[^\S\n]*\n?", re.MULTILINE | re.IGNORECASE)


class CalendarEntry:
    """One event or task, asked for its properties."""

    def __init__(self, component: Component, calendar: str, zone_of: ZoneOf) -> None:
        self._component = cast(Any, component)
        self._calendar = calendar
        self._zone_of = zone_of

    def event(self) -> Data:
        """The record of an event. Raises: BadRecord."""
        begins = self._time("DTSTART")
        if begins is None:
            raise BadRecord("bad_date", "it has no time of beginning that can be read")
        ends = self._time("DTEND") or self._after(begins)
        attendees, organizers = self._people("ATTENDEE"), self._people("ORGANIZER")
        return self._shared() | {
            "starts_at": self._rendered(begins),
            "ends_at": self._ended(ends),
            "starts_on": self._day_of(begins).isoformat(),
            "all_day": not isinstance(begins, datetime),
            "time_zone": self._zone_name("DTSTART"),
            "organizer": next(iter(organizers), None),
            "attendees": attendees,
            "attendee_count": len(attendees),
            "people": or_none(", ".join(dict.fromkeys([*organizers, *attendees]))),
            "is_recurring": bool(self._rules() or self._listed("RDATE")),
            "recurrence_rule": self._raw("RRULE") or None,
            "replaces_occurrence_at": self._rendered_or_none("RECURRENCE-ID"),
        }

    def replaced(self) -> tuple[str | None, str | None]:
        """The uid, and the beginning of the occurrence that this entry replaces."""
        return self._text("UID"), self._rendered_or_none("RECURRENCE-ID")

    def slots(self, event: Data, last: date, replaced: Collection[object]) -> Iterator[Data]:
        """Each time that the event takes place until a day, other entries' times left out.

        Raises: BadRecord, after the first time, if its rule cannot be spelled out.
        """
        begins, ends = self._time("DTSTART"), self._time("DTEND")
        if begins is None or event["status"] == "cancelled":
            return
        length = _between(begins, ends) if ends is not None else self._length()
        rules = [parse_rule(each) for each in self._rules()]
        starts = deque(self._starts(begins, rules, last), maxlen=MOST_SLOTS)
        left_out = self._listed("EXDATE")
        moments = {self._rendered(each) for each in left_out}
        days = {each for each in left_out if not isinstance(each, datetime)}
        for start in starts:
            starts_at, starts_on = self._rendered(start), self._day_of(start)
            if starts_at in moments or starts_on in days:
                continue
            if (event["uid"], starts_at) in replaced and not self._replaces():
                continue
            ends_at = self._rendered(start + length) if length is not None else None
            yield {
                "id": stable_id("slot", event["id"], starts_at),
                "event_id": event["id"],
                "calendar": event["calendar"],
                "title": event["title"],
                "location": event["location"],
                "people": event["people"],
                "starts_at": starts_at,
                "ends_at": ends_at,
                "starts_on": starts_on.isoformat(),
                "all_day": event["all_day"],
                "minutes": None if event["all_day"] else _minutes(length),
            }
        if None in rules:
            raise BadRecord("unknown_rule", "how it repeats is not spelled out")

    def _replaces(self) -> bool:
        """Whether it stands for one occurrence of another; then it takes place once."""
        return "RECURRENCE-ID" in self._component

    def _rules(self) -> list[Any]:
        """The rules of repetition; an empty one is none."""
        return [] if self._replaces() else [each for each in self._values("RRULE") if each]

    def _starts(self, begins: Start, rules: list[Rule | None], last: date) -> Iterator[Start]:
        for rule in rules or [None]:
            yield from rule.starts(begins, last) if rule else SINGLE.starts(begins, date.max)
        for day in self._listed("RDATE"):
            if isinstance(day, datetime) == isinstance(begins, datetime):
                yield day

    def _listed(self, name: str) -> list[Start]:
        """The dates of a property that lists them."""
        dated: list[Any] = []
        for value in self._values(name):
            dated += _facet(value, "dts") or []
        found: list[Any] = [_facet(each, "dt") for each in dated]
        begun: list[Any] = [each[0] if isinstance(each, tuple) else each for each in found]
        return [each for each in begun if isinstance(each, date)]

    def task(self) -> Data:
        """The record of a task."""
        due = self._time("DUE") or self._time("DTSTART")
        when = {"due_at": self._rendered(due)} if due is not None else {}
        done = self._text("STATUS") == "COMPLETED" or "COMPLETED" in self._component
        priority = self._text("PRIORITY") or ""
        return {
            **self._shared(),
            **when,
            "completed_at": self._rendered_or_none("COMPLETED"),
            "is_completed": done,
            "priority": int(priority) if priority.isdecimal() and len(priority) < 10 else None,
        }

    def _shared(self) -> Data:
        uid = self._text("UID")
        same = self._raw("RECURRENCE-ID")
        identity = (uid, same) if uid else (self._component.to_ical(),)
        status = self._text("STATUS")
        return {
            "id": stable_id("cal", self._calendar, self._component.name, *identity),
            "calendar": printable(self._calendar),
            "title": self._text("SUMMARY"),
            "description": self._text("DESCRIPTION"),
            "location": self._text("LOCATION"),
            "status": status.lower() if status else None,
            "categories": self._categories(),
            "url": self._text("URL"),
            "uid": uid,
            "created_at": self._rendered_or_none("CREATED"),
            "updated_at": self._rendered_or_none("LAST-MODIFIED"),
        }

    def _values(self, name: str) -> list[Any]:
        value = self._component.get(name)
        if value is None:
            return []
        return cast("list[Any]", value) if isinstance(value, list) else [value]

    def _text(self, name: str) -> str | None:
        values = self._values(name)
        return or_none(printable(str(values[0])).strip()) if values else None

    def _raw(self, name: str) -> str | None:
        values = self._values(name)
        try:
            return printable(decoded(values[0].to_ical())) if values else None
        except FAULTS:
            return None

    def _time(self, name: str) -> datetime | date | None:
        values = self._values(name)
        found: Any = _facet(values[0], "dt") if values else None
        return found if isinstance(found, date) else None

    def _after(self, begins: Start) -> Start | None:
        length = self._length()
        try:
            return begins + length if length is not None else None
        except OverflowError:
            return None

    def _length(self) -> timedelta | None:
        values = self._values("DURATION")
        length: Any = _facet(values[0], "td") if values else None
        return length if isinstance(length, timedelta) else None

    def _zone_name(self, name: str) -> str | None:
        values = self._values(name)
        found: Any = _parameters(values[0]).get("TZID") if values else None
        return one_line(printable(str(found)), 200) if found else None

    def _rendered(self, moment: datetime | date, name: str = "DTSTART") -> str:
        if isinstance(moment, datetime):
            return rendered(moment, self._zone_of(self._zone_name(name)))
        return f"{moment.isoformat()}T00:00:00Z"

    def _ended(self, ends: Start | None) -> str | None:
        """A length counts from the beginning, an end may have a zone of its own."""
        if ends is None:
            return None
        named = self._zone_name("DTEND") is not None
        return self._rendered(ends, "DTEND" if named else "DTSTART")

    def _day_of(self, moment: Start) -> date:
        """Its day by the clock it was entered in; one in UTC by the calendar's."""
        if not isinstance(moment, datetime):
            return moment
        if moment.tzinfo is None or self._zone_name("DTSTART") is not None:
            return moment.date()
        return moment.astimezone(self._zone_of(None)).date()

    def _rendered_or_none(self, name: str) -> str | None:
        moment = self._time(name)
        try:
            return self._rendered(moment) if moment is not None else None
        except BadRecord:
            return None

    def _people(self, name: str) -> list[str]:
        return [found for each in self._values(name) if (found := _person(each))]

    def _categories(self) -> list[str]:
        found: list[str] = []
        for each in self._values("CATEGORIES"):
            listed: list[Any] = _facet(each, "cats") or [each]
            found += [printable(str(name)) for name in listed]
        return found


def parsed(kind: type[Event] | type[Todo], raw: bytes) -> Component:
    """An entry, with vendors' prefixes of zone names overlooked. Raises: BadRecord."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GloballyUniqueTZIDGuessed)
        try:
            return kind.from_ical(_without_alarms(decoded(raw)))
        except FAULTS:
            raise BadRecord("bad_record", "it is not a valid entry") from None


def _without_alarms(text: str) -> str:
    """They are not kept, and often broken. One that does not end is left, with all after it."""
    pieces: list[str] = []
    at = 0
    while begin := _ALARM_BEGINS.search(text, at):
        end = _ALARM_ENDS.search(text, begin.end())
        if end is None:
            break
        pieces.append(text[at : begin.start()])
        at = end.end()
    return "".join([*pieces, text[at:]])


def _facet(value: Any, name: str) -> Any:
    """One side of a property's value; None where the value could not be parsed."""
    try:
        return getattr(value, name, None)
    except BrokenCalendarProperty:
        return None


def _between(begins: Start, ends: Start) -> timedelta | None:
    """The length by the clock on the wall; None for a time and a day."""
    if isinstance(begins, datetime) and isinstance(ends, datetime):
        return ends.replace(tzinfo=None) - begins.replace(tzinfo=None)
    if isinstance(begins, datetime) or isinstance(ends, datetime):
        return None
    return ends - begins


def _minutes(length: timedelta | None) -> int | None:
    return None if length is None or length < timedelta() else int(length.total_seconds() // 60)


def _parameters(value: Any) -> dict[str, Any]:
    return _facet(value, "params") or {}


def _person(value: Any) -> str | None:
    address = printable(str(value)).removeprefix("mailto:").removeprefix("MAILTO:")
    name = _parameters(value).get("CN")
    if name and str(name) != address:
        return one_line(f"{printable(str(name))} <{address}>")
    return or_none(one_line(address))


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of repetition of RFC 5545, as dateutil reads it: its parts, without its end.

    Wall time is kept over changes of the clock.
    """

    parts: Mapping[str, str]
    until: Start | None = None

    def starts(self, begins: Start, last: date) -> Iterator[Start]:
        """All beginnings up to a day, in their order."""
        end = datetime.combine(last, time.max)
        if self.until is not None:
            end = min(end, _wall_end(self.until, begins))
        try:
            for start in islice(self._walls(begins, last), MOST_STARTS):
                if start > end:
                    return
                yield _like(begins, start)
        except (ValueError, OverflowError):
            return

    def _walls(self, begins: Start, last: date) -> Iterator[datetime]:
        if isinstance(begins, datetime):
            parts, first = self.parts, begins.replace(tzinfo=None)
        else:
            parts = {name: each for name, each in self.parts.items() if name not in _OF_TIME}
            first = datetime.combine(begins, time.min)
        cycles = (MAXYEAR - max(first.year, last.year)) // _CYCLE_YEARS * _CYCLE_YEARS
        for start in _expanded(parts, first.replace(year=first.year + cycles)):
            yield start.replace(year=start.year - cycles)


SINGLE = Rule({"FREQ": "DAILY", "COUNT": "1"})  # of an event that takes place once


def parse_rule(rule: object) -> Rule | None:
    """The rule, or None if it is none that can be spelled out.

    Rules by the hour or shorter are refused: one of them that never holds would be tried for ever.
    """
    if not isinstance(rule, Mapping):
        return None
    parts = cast("Mapping[str, Any]", rule)
    written = {name.upper(): ",".join(str(each) for each in _all(parts, name)) for name in parts}
    written.pop("UNTIL", None)
    until = next(iter(_all(parts, "UNTIL")), None)
    if written.get("FREQ", "").upper() not in _FREQUENCIES or "BYEASTER" in written:
        return None
    try:
        if int(written.get("INTERVAL", 1)) < 1:
            del written["INTERVAL"]
        if int(written.get("COUNT", 1)) < 1:
            del written["COUNT"]
        _expanded(written, _ANY)
    except (ValueError, TypeError, LookupError, OverflowError):
        return None
    return Rule(written, until if isinstance(until, date) else None)


def _expanded(parts: Mapping[str, str], begins: datetime) -> Any:
    return rrulestr(";".join(f"{name}={each}" for name, each in parts.items()), dtstart=begins)


def _wall_end(until: Start, begins: Start) -> datetime:
    """The last moment of a rule by the clock that its event begins by."""
    if not (isinstance(until, datetime) and isinstance(begins, datetime)):
        return datetime.combine(until, time.max)
    if until.tzinfo is not None and begins.tzinfo is not None:
        until = until.astimezone(begins.tzinfo)
    return until.replace(tzinfo=None)


def _like(begins: Start, start: datetime) -> Start:
    if isinstance(begins, datetime):
        return start.replace(tzinfo=begins.tzinfo, fold=begins.fold)
    return start.date()


def _all(parts: Mapping[str, Any], name: str) -> list[Any]:
    value = parts.get(name)
    if isinstance(value, list | tuple):
        return list(cast("list[Any]", value))
    return [] if value is None else [value]
