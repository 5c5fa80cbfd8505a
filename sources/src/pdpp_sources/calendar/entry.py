"""One event or task of a calendar, asked for its properties; those it cannot say are None."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import MAXYEAR, UTC, date, datetime, time, timedelta, tzinfo
from itertools import chain
from typing import Any, cast
from zoneinfo import ZoneInfo

import msgspec
from dateutil.rrule import rrulestr
from icalendar import Component
from icalendar.error import BrokenCalendarProperty, GloballyUniqueTZIDGuessed

from pdpp_kernel.source_item import Data, stable_id
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.text import decoded, one_line, or_none, printable
from pdpp_sources.common.times import rendered

Start = datetime | date
Replaced = tuple[str | None, str | date | None]
ZoneOf = Callable[[str | None], tzinfo]


class Shifted(msgspec.Struct, frozen=True):
    """What one entry changes of all times of another from an occurrence on.

    Shapes: `since` is the instant or day of that occurrence as it was; `length` is None where the
    entry does not say how long it takes, `facts` are those that it says itself.
    """

    since: str
    by: timedelta
    length: timedelta | None
    facts: Data


MOST_STARTS = 150_000  # examined: a rule by the day since 1616
MOST_SLOTS = 20_000
FAULTS = (ValueError, KeyError, TypeError, AttributeError, IndexError, LookupError, OverflowError)
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
_OF_TIME = ("BYHOUR", "BYMINUTE", "BYSECOND")
_LINE_END = re.compile(r"\r*\n|\r+")
_FOLD = re.compile(r"\n[ \t]")
_UTC = ZoneInfo("UTC")
_ANY = datetime(2024, 1, 1)  # noqa: DTZ001 (wall time)
# Dates and weekdays come again after so long. dateutil looks for a day until the year 9999, so a
# rule is asked in the last cycle: one that never holds ends soon.
_CYCLE_YEARS = 400
# Names of zones with a colon, which ends a name that is not quoted.
_ZONE_WITH_COLON = re.compile(
    r';TZID=([^";\n]*(?:\(|://|GMT|UTC)[^"\n]*?):(?=\d{8})', re.IGNORECASE
)
_ALARM_BEGINS = re.compile(r"^BEGIN:VALARM\s", re.MULTILINE | re.IGNORECASE)
_ALARM_ENDS = re.compile(r"^END:VALARM[^\S\n]*\n?", re.MULTILINE | re.IGNORECASE)


class CalendarEntry:
    """One event or task, asked for its properties."""

    def __init__(
        self, component: Component, calendar: str, zone_of: ZoneOf, own_zone: tzinfo | None
    ) -> None:
        self._component = cast(Any, component)
        self._calendar = calendar
        self._zone_of = zone_of
        self._own_zone = own_zone  # of the calendar, if it names one

    def event(self) -> Data:
        """The record of an event. Raises: BadRecord."""
        begins = self._time("DTSTART")
        if begins is None:
            raise BadRecord("bad_date", "the start of the event cannot be read")
        ends = self._time("DTEND") or self._after(begins)
        attendees, organizers = self._people("ATTENDEE"), self._people("ORGANIZER")
        starts_at, ends_at = self._rendered(begins), self._ended(ends)
        return self._shared() | {
            "starts_at": starts_at,
            "ends_at": ends_at,
            "starts_on": self._day_of(begins).isoformat(),
            "all_day": not isinstance(begins, datetime),
            "minutes": _minutes(starts_at, ends_at) if isinstance(begins, datetime) else None,
            "time_zone": self._zone_name("DTSTART"),
            "organizer": next(iter(organizers), None),
            "attendees": attendees,
            "attendee_count": len(attendees),
            "people": or_none(", ".join(dict.fromkeys([*organizers, *attendees]))),
            "is_recurring": bool(self._rules() or self._listed("RDATE")),
            "recurrence_rule": self._raw("RRULE") or None,
            "replaces_occurrence_at": self._rendered_or_none("RECURRENCE-ID"),
        }

    def replaced(self) -> Iterator[Replaced]:
        """The occurrence that this entry replaces: its uid, and its instant or its day.

        Some programs name a day for an occurrence with a time, others midnight for a whole day.
        """
        uid, moment = self._text("UID"), self._time("RECURRENCE-ID")
        if isinstance(moment, datetime):
            yield uid, self._rendered_or_none("RECURRENCE-ID")
        if moment is not None and _wall(moment).time() == time.min:
            yield uid, _wall(moment).date()

    def shifted(self) -> tuple[str | None, Shifted] | None:
        """The uid, and what the entry changes of all later times, if it says that it does.

        Source: RFC 5545, section 3.8.4.4.
        """
        values, begins = self._values("RECURRENCE-ID"), self._time("DTSTART")
        moment = self._time("RECURRENCE-ID")
        says = str(_parameters(values[0]).get("RANGE", "")).upper() if values else ""
        if says != "THISANDFUTURE" or begins is None or moment is None:
            return None
        by = _between(moment, begins)
        ends = self._time("DTEND")
        length = _between(begins, ends) if ends is not None else self._length()
        facts = {"title": self._text("SUMMARY"), "location": self._text("LOCATION")}
        data: Data = {name: value for name, value in facts.items() if value is not None}
        if by is None:
            return None
        return self._text("UID"), Shifted(self._rendered(moment), by, length, data)

    def slots(
        self,
        event: Data,
        first: date,
        last: date,
        replaced: AbstractSet[Replaced],
        shifts: Sequence[Shifted] = (),
    ) -> Iterator[Data]:
        """Each time that the event takes place from a day to a day, other entries' times left out.

        One that takes place once has its time whenever that is. Times from an occurrence on that
        another entry moves (`shifts`, the earliest first) keep their ids.
        Raises: BadRecord, after all times that are given, if there are more.
        """
        begins, ends = self._time("DTSTART"), self._time("DTEND")
        if begins is None or event["status"] == "cancelled":
            return
        length = _between(begins, ends) if ends is not None else self._length()
        rules = [parse_rule(rule_text) for rule_text in self._rules()]
        left_out = self._left_out(begins)
        later = () if self._replaces() else tuple(reversed(shifts))
        earlier, slots_so_far = 0, set[str]()
        for start in self._starts(begins, rules, last):
            starts_at, starts_on = self._rendered(start), self._day_of(start)
            elsewhere = ((event["uid"], starts_at), (event["uid"], starts_on))
            if starts_at in left_out or starts_on in left_out or starts_at in slots_so_far:
                continue
            if not self._replaces() and not replaced.isdisjoint(elsewhere):
                continue
            if starts_on < first and (rules or start != begins):
                earlier += 1
                continue
            if len(slots_so_far) == MOST_SLOTS:
                raise BadRecord(
                    "agenda_cut",
                    message(
                        (
                            "the event repeats often; only the first %(most)s times were "
                            "added to the agenda"
                        ),
                        most=MOST_SLOTS,
                    ),
                )
            slots_so_far.add(starts_at)
            moved = next((shift for shift in later if shift.since <= starts_at), None)
            yield self._slot(event, start, length, moved)
        if None in rules:
            raise BadRecord(
                "unknown_rule", "the rule by which the event repeats was not worked out"
            )
        if earlier:
            raise BadRecord(
                "agenda_cut",
                message(
                    ("%(num)s times of the event before %(day)s were not added to the agenda"),
                    num=earlier,
                    day=str(first),
                ),
            )

    def _slot(
        self, event: Data, start: Start, length: timedelta | None, moved: Shifted | None
    ) -> Data:
        """One time of the event, known by when it would be were it not moved."""
        slot_id = stable_id("slot", event["id"], self._identifying(start))
        facts: Data = {name: event[name] for name in ("title", "location", "people")}
        if moved is not None:
            start, facts = start + moved.by, facts | moved.facts
            length = moved.length if moved.length is not None else length
        starts_at = self._rendered(start)
        ends_at = self._rendered(start + length) if length is not None else None
        return {
            "id": slot_id,
            "event_id": event["id"],
            "calendar": event["calendar"],
            **facts,
            "starts_at": starts_at,
            "ends_at": ends_at,
            "starts_on": self._day_of(start).isoformat(),
            "all_day": event["all_day"],
            "minutes": None if event["all_day"] else _minutes(starts_at, ends_at),
        }

    def _replaces(self) -> bool:
        """Whether it stands for one occurrence of another; then it takes place once."""
        return "RECURRENCE-ID" in self._component

    def _rules(self) -> list[Any]:
        """The rules of repetition; an empty one is none."""
        return [] if self._replaces() else [value for value in self._values("RRULE") if value]

    def _starts(self, begins: Start, rules: list[Rule | None], last: date) -> Iterator[Start]:
        for rule in rules or [None]:
            yield from rule.starts(begins, last) if rule else SINGLE.starts(begins, date.max)
        for day in self._listed("RDATE"):
            if isinstance(day, datetime) == isinstance(begins, datetime):
                yield day

    def _left_out(self, begins: Start) -> set[str | date]:
        """The instants and days on which it does not take place after all."""
        left_out = self._listed("EXDATE")
        whole_days = not isinstance(begins, datetime)
        instants = {self._rendered(moment) for moment in left_out if isinstance(moment, datetime)}
        days = {moment for moment in left_out if not isinstance(moment, datetime)}
        by_the_clock = {moment.date() for moment in left_out if isinstance(moment, datetime)}
        return {*instants, *days, *(by_the_clock if whole_days else ())}

    def _listed(self, name: str) -> list[Start]:
        """The dates of a property that lists them, each list in a zone of its own."""
        starts: list[Start] = []
        for value in self._values(name):
            listed: list[Any] = _facet(value, "dts") or []
            for start in listed:
                moment: Any = _facet(start, "dt")
                begins: Any = cast("Any", moment[0]) if isinstance(moment, tuple) else moment
                begun = self._zoned(begins, value)
                starts += [begun] if begun is not None else []
        return starts

    def task(self) -> Data:
        """The record of a task."""
        due = self._time("DUE") or self._time("DTSTART")
        due_data = {"due_at": self._rendered(due)} if due is not None else {}
        is_done = self._text("STATUS") == "COMPLETED" or "COMPLETED" in self._component
        priority = self._text("PRIORITY") or ""
        return {
            **self._shared(),
            **due_data,
            "all_day": due is not None and not isinstance(due, datetime),
            "completed_at": self._rendered_or_none("COMPLETED"),
            "is_completed": is_done,
            "priority": int(priority) if priority.isdecimal() and len(priority) < 10 else None,
        }

    def journal(self) -> Data:
        """The record of a journal entry."""
        written = self._time("DTSTART") or self._time("CREATED")
        written_data = {"written_at": self._rendered(written)} if written is not None else {}
        is_day = written is not None and not isinstance(written, datetime)
        return {**self._shared(), **written_data, "all_day": is_day}

    def busy_times(self) -> Iterator[Data]:
        """The times that somebody says they are busy or free."""
        people = [*self._people("ATTENDEE"), *self._people("ORGANIZER")]
        for period in self._values("FREEBUSY"):
            begins, ends = _facet(period, "start"), _facet(period, "end")
            if not (isinstance(begins, datetime) and isinstance(ends, datetime)):
                raise BadRecord("bad_date", "one of the times of the event cannot be read")
            kind = str(_parameters(period).get("FBTYPE", "BUSY")).lower()
            span = (self._rendered(begins), self._rendered(ends))
            yield {
                "id": stable_id("busy", self._calendar, *people, *span, kind),
                "calendar": printable(self._calendar),
                "kind": one_line(printable(kind), 100),
                "person": next(iter(people), None),
                "starts_at": span[0],
                "ends_at": span[1],
                "minutes": _minutes(*span),
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
        return self._zoned(_facet(values[0], "dt"), values[0]) if values else None

    def _zoned(self, moment: object, value: Any) -> Start | None:
        """A moment in the zone that its property names; one in UTC stays there."""
        if not isinstance(moment, datetime):
            return moment if isinstance(moment, date) else None
        name = _parameters(value).get("TZID")
        if name is None or moment.tzinfo in (UTC, _UTC):
            return moment
        return moment.replace(tzinfo=self._zone_of(str(name)))

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
        zone_name: Any = _parameters(values[0]).get("TZID") if values else None
        return one_line(printable(str(zone_name)), 200) if zone_name else None

    def _rendered(self, moment: datetime | date, name: str = "DTSTART") -> str:
        if isinstance(moment, datetime):
            return rendered(moment, self._zone_of(self._zone_name(name)))
        return f"{moment.isoformat()}T00:00:00Z"

    def _identifying(self, start: Start) -> str:
        """A time that is the same whatever the owner's zone, which another import may not have."""
        if isinstance(start, datetime) and start.tzinfo is None:
            return rendered(start, self._own_zone or UTC)
        return self._rendered(start)

    def _ended(self, ends: Start | None) -> str | None:
        """A length counts from the beginning, an end may have a zone of its own."""
        if ends is None:
            return None
        has_zone = self._zone_name("DTEND") is not None
        return self._rendered(ends, "DTEND" if has_zone else "DTSTART")

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
        return [person for value in self._values(name) if (person := _person(value))]

    def _categories(self) -> list[str]:
        categories: list[str] = []
        for value in self._values("CATEGORIES"):
            listed: list[Any] = _facet(value, "cats") or [value]
            named = (printable(str(name)).strip() for name in listed)
            categories += [name for name in named if name]
        return categories


def parsed(kind: type[Component], raw: bytes) -> Component:
    """An entry, with vendors' prefixes of zone names overlooked. Raises: BadRecord."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GloballyUniqueTZIDGuessed)
        try:
            return kind.from_ical(_without_alarms(lines_of(raw)))
        except FAULTS:
            raise BadRecord("bad_record", "the calendar entry is not valid") from None


def lines_of(raw: bytes) -> str:
    """A component with its folded lines whole, whatever ends them, and names of zones quoted."""
    text = _FOLD.sub("", _LINE_END.sub("\n", decoded(raw)))
    return _ZONE_WITH_COLON.sub(_quoted_zone, text)


def _quoted_zone(match: re.Match[str]) -> str:
    return f';TZID="{match.group(1)}":' if ":" in match.group(1) else match.group()


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
    """The length by the clock on the wall of the first; None for a time and a day."""
    if isinstance(begins, datetime) and isinstance(ends, datetime):
        if begins.tzinfo is not None and ends.tzinfo is not None:
            ends = ends.astimezone(begins.tzinfo)  # a flight ends by another clock
        return ends.replace(tzinfo=None) - begins.replace(tzinfo=None)
    if isinstance(begins, datetime) or isinstance(ends, datetime):
        return None
    return ends - begins


def _minutes(starts_at: str, ends_at: str | None) -> int | None:
    """Between two instants, since clocks on the wall may be of two zones; none before its start."""
    if ends_at is None:
        return None
    length = datetime.fromisoformat(ends_at) - datetime.fromisoformat(starts_at)
    return None if length < timedelta() else int(length.total_seconds() // 60)


def _parameters(value: Any) -> dict[str, Any]:
    return _facet(value, "params") or {}


def _person(value: Any) -> str | None:
    address = printable(str(value)).removeprefix("mailto:").removeprefix("MAILTO:")
    name = _parameters(value).get("CN")
    if name and str(name) != address:
        return one_line(f"{printable(str(name))} <{address}>")
    return or_none(one_line(address))


class Rule(msgspec.Struct, frozen=True):
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
        first = _wall(begins)
        starts_left = int(self.parts.get("COUNT", MOST_STARTS + 1))
        try:
            walls = self._walls(begins, last)
            head = next(walls, None)
            if head != first and first <= end:  # the first time counts, also outside of the rule
                yield begins
                starts_left -= 1
            for number, start in enumerate(chain(filter(None, (head,)), walls)):
                if start > end or starts_left <= 0:
                    return
                if number == MOST_STARTS:
                    raise BadRecord("agenda_cut", "the event repeats too often to list every time")
                yield _like(begins, start)
                starts_left -= 1
        except (ValueError, OverflowError):
            return

    def _walls(self, begins: Start, last: date) -> Iterator[datetime]:
        parts, first = self.parts, _wall(begins)
        if not isinstance(begins, datetime):
            parts = {name: value for name, value in self.parts.items() if name not in _OF_TIME}
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
    written = {name.upper(): ",".join(str(value) for value in _all(parts, name)) for name in parts}
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
    return rrulestr(";".join(f"{name}={value}" for name, value in parts.items()), dtstart=begins)


def _wall(moment: Start) -> datetime:
    """A moment by its own clock; a day at its beginning."""
    if isinstance(moment, datetime):
        return moment.replace(tzinfo=None)
    return datetime.combine(moment, time.min)


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
