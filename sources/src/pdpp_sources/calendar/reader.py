"""Calendars: iCalendar files of Google, Apple, Outlook and everyone else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta, tzinfo
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

from icalendar import Component as ParsedComponent
from icalendar import Event, FreeBusy, Journal, Timezone, Todo, vPeriod

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message
from pdpp_sources.calendar.entry import FAULTS, CalendarEntry, Replaced, Shifted, lines_of, parsed
from pdpp_sources.calendar.vcalendar import modern
from pdpp_sources.calendar.zones import differs_from_iana, named_zone
from pdpp_sources.common.components import Component, cut_components
from pdpp_sources.common.declaration import (
    Field,
    StreamForm,
    by_days,
    caseless,
    day,
    declaration,
    ending,
    flag,
    integer,
    key,
    moment,
    names,
    occurrence_of,
    person,
    plain,
    reference,
    sent_to,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import (
    MOST_REMEMBERED,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import decoded, one_line

# A repeating event is spelled out from so long before the export to so long after it.
BEFORE = timedelta(days=20 * 365)
AHEAD = timedelta(days=400)
_CALENDAR = re.compile(
    rb"^\s*(\xef\xbb\xbf)?BEGIN:(VCALENDAR|VEVENT|VTODO|VJOURNAL|VFREEBUSY)", re.IGNORECASE
)
_UID = re.compile(rb"^UID[:;][^\r\n]*", re.MULTILINE)
_OCCURRENCE = re.compile(rb"^RECURRENCE-ID[:;][^\r\n]*", re.MULTILINE)
_SEQUENCE = re.compile(rb"^SEQUENCE:(\d{1,9})", re.MULTILINE)
_WRITTEN = re.compile(rb"^LAST-MODIFIED:([^\r\n]*)", re.MULTILINE)
_BUSY = re.compile(rb"^FREEBUSY[:;]", re.MULTILINE | re.IGNORECASE)
_SPAN = re.compile(rb"(?:DTSTART|DTEND|DURATION)[:;]", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\,;])")
_SUFFIXES = (".ics", ".vcs", ".ical", ".ifb", ".icalendar", ".txt", "")
_COMPONENTS = frozenset({"VEVENT", "VTODO", "VTIMEZONE", "VJOURNAL", "VFREEBUSY"})


def _shared() -> list[Field]:
    return [
        key(),
        word("calendar", "Name of the calendar"),
        text("title", "What it is", title=True),
        text("description", "Notes"),
        text("location", "Where it is"),
        word("status", "confirmed, tentative, cancelled …"),
        names("categories", "Categories"),
        plain("url", "Address on the web"),
        plain("uid", "The calendar's own id"),
        moment("created_at", "When it was entered"),
        moment("updated_at", "When it was last changed"),
    ]


_BUSY_VIEW = ["id", "starts_at", "ends_at", "all_day"]
EVENTS = StreamForm(
    "events",
    "Your calendar events",
    "Title, time, place and people of every event.",
    [
        *_shared(),
        moment("starts_at", "When it begins, in UTC; all-day events at midnight UTC", event=True),
        ending(moment("ends_at", "When it ends, in UTC")),
        day("starts_on", "Day it begins, by its own time zone"),
        by_days(flag("all_day", "Whether it takes whole days")),
        plain("time_zone", "Time zone it was entered in"),
        person(caseless(word("organizer", "Who invited")), PersonForm.WRITTEN),
        person(names("attendees", "Who was invited"), PersonForm.WRITTEN),
        integer("attendee_count", "How many were invited", summed=True),
        sent_to(text("people", "Who invited and who was invited, to search in")),
        flag("is_recurring", "Whether it repeats; then the times are those of the first"),
        plain("recurrence_rule", "How it repeats (RFC 5545 RRULE)"),
        moment("replaces_occurrence_at", "Occurrence of a repeating event that this one replaces"),
    ],
    time_field="starts_at",
    children={"agenda": ("agenda", "event_id")},
    views={
        "busy": ("When you were busy, without titles", ["id", "starts_at", "ends_at", "all_day"])
    },
    semantic=["title", "description"],
)
TASKS = StreamForm(
    "tasks",
    "Your tasks",
    "Title, due time and state of every task.",
    [
        *_shared(),
        moment("due_at", "When it is due, in UTC; by a day at midnight UTC", event=True),
        by_days(flag("all_day", "Whether it is due by a day, not by a time")),
        moment("completed_at", "When it was done"),
        flag("is_completed", "Whether it is done"),
        integer("priority", "1 is highest, 9 lowest"),
    ],
    time_field="due_at",
)
AGENDA = StreamForm(
    "agenda",
    "Your calendar, day by day",
    "Every event at each time it takes place: repeating ones spelled out from 20 years before the "
    "export to a year after it.",
    [
        key(),
        occurrence_of(reference("event_id", "The event", required=True)),
        word("calendar", "Name of the calendar"),
        text("title", "What it is", title=True),
        text("location", "Where it is"),
        sent_to(text("people", "Who invited and who was invited, to search in")),
        moment("starts_at", "When it begins, in UTC; all-day events at midnight UTC", event=True),
        ending(moment("ends_at", "When it ends, in UTC")),
        day("starts_on", "Day it begins, by its own time zone"),
        by_days(flag("all_day", "Whether it takes whole days")),
        integer("minutes", "How long it takes, in minutes; none for whole days", summed=True),
    ],
    time_field="starts_at",
    views={
        "busy": ("When you are busy, without titles", ["id", "starts_at", "ends_at", "all_day"])
    },
    parents={"event": ("events", "event_id")},
)
JOURNAL = StreamForm(
    "journal",
    "Your journal",
    "Title and text of what you noted for a day.",
    [
        *_shared(),
        moment("written_at", "The day or time it is about", event=True),
        by_days(flag("all_day", "Whether it is about a day, not a time")),
    ],
    time_field="written_at",
    semantic=["title", "description"],
)
BUSY_TIMES = StreamForm(
    "busy_times",
    "When people said they are busy",
    "Times without titles that you or others were shown as busy or free.",
    [
        key(),
        word("calendar", "Name of the calendar"),
        word("kind", "busy, free, busy-tentative or busy-unavailable"),
        caseless(word("person", "Whose time it is", title=True, searched=True)),
        moment("starts_at", "When it begins, in UTC", event=True),
        ending(moment("ends_at", "When it ends, in UTC")),
        integer("minutes", "How long it takes, in minutes", summed=True),
    ],
    time_field="starts_at",
)
DECLARATION = declaration(
    "calendar",
    "Calendar",
    "Events, tasks and journal of your calendars.",
    [EVENTS, AGENDA, TASKS, JOURNAL, BUSY_TIMES],
)
_KINDS: dict[str, type[ParsedComponent]] = {
    "VEVENT": Event,
    "VTODO": Todo,
    "VJOURNAL": Journal,
    "VFREEBUSY": FreeBusy,
}


class CalendarSource:
    """Reads every entry; a repeating event is one record with its rule."""

    connector_key = "calendar"
    declaration: Data = DECLARATION
    how_to_export = (
        "Google: takeout.google.com, choose Calendar. Apple: Calendar > File > Export. Outlook: "
        "save the calendar as an .ics file. Any .ics or .vcs file or folder of them."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim what begins as an iCalendar file."""
        mine = matching(export, _CALENDAR.match, *_SUFFIXES)
        return claim(mine, "it begins as an iCalendar file")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield the entries of each calendar."""
        captured_at = export.captured_at
        span = ((captured_at - BEFORE).date(), (captured_at + AHEAD).date())
        items = each_member(export, lambda member: _Calendar(member, export.zone, span).items())
        return beginning_at(start, without_repeats(_times_once(items)))


def _times_once(items: Iterator[SourceItem]) -> Iterator[SourceItem]:
    """An event that comes again is told once, without each of its times."""
    times: set[int] = set()
    is_repeated = False
    for item in items:
        is_time = (item.where if isinstance(item, Skipped) else item.stream) == AGENDA.name
        if isinstance(item, SourceRecord) and item.stream == EVENTS.name:
            mark = hash(item.data["id"])
            is_repeated = mark in times
            if len(times) < MOST_REMEMBERED:
                times.add(mark)
        if not (is_time and is_repeated):
            yield item


class _Calendar:
    """One file on its way to records: its name, and the zones it defines."""

    def __init__(self, member: ExportMember, zone: tzinfo, span: tuple[date, date]) -> None:
        self._member = member
        self._name = PurePosixPath(member.name).stem
        self._zone = zone
        self._own_zone: tzinfo | None = None
        self._within = ""  # the kind of the entry around, if it is one that is not read
        self._zones: dict[str, tzinfo] = {}
        self._span = span
        self._replaced: set[Replaced] = set()
        self._shifts: dict[str | None, list[Shifted]] = {}
        self._differing: dict[str, tzinfo] = {}  # zones that bear a name of IANA's and are others
        self._is_old = False
        self._newest: dict[bytes, tuple[int, bytes]] = {}

    def items(self) -> Iterator[SourceItem]:
        self._survey()
        with self._member.open() as stream:
            for piece in cut_components(stream, _COMPONENTS):
                if piece.name:
                    yield from self._component(piece)
                elif piece.raw is not None:
                    line = decoded(piece.raw).strip()
                    self._learn(line)
                    yield from self._unknown(line, piece.offset)

    def _unknown(self, line: str, offset: int) -> Iterator[Skipped]:
        """A report of an entry of another kind where it begins; what is inside it is part of it."""
        mark, _, kind = line.upper().partition(":")
        if mark == "BEGIN" and kind != "VCALENDAR" and not self._within:
            self._within = kind
            reason = message("calendar entries of this kind are not imported")
            position_text, position = self._member.where(offset), self._member.offset + offset
            yield Skipped(position_text, "unknown_record_type", reason, position)
        elif mark == "END" and kind in (self._within, "VCALENDAR"):
            self._within = ""

    def _survey(self) -> None:
        """Learn name and zones, and which occurrences other entries of the file replace."""
        with self._member.open() as stream:
            for piece in cut_components(stream, _COMPONENTS):
                if piece.raw is None:
                    continue
                if not piece.name:
                    self._learn(decoded(piece.raw))
                else:
                    self._foresee(piece.name, piece.raw, self._member.offset + piece.offset)

    def _foresee(self, name: str, raw: bytes, position: int) -> None:
        """Learn from an entry before it is read. Raises: BadRecord."""
        with suppress(BadRecord):
            BOOKMARK.entry(position)
            if name == "VTIMEZONE":
                self._learn_zone(raw)
            elif name == "VEVENT":
                self._learn_version(raw)
        BOOKMARK.after(position)

    def _learn_version(self, raw: bytes) -> None:
        """Of several versions of an event in one file the newest counts."""
        own, version = _identity(raw), _version(raw)
        if version > self._newest.get(own, (-1, b"")) and len(self._newest) < MOST_REMEMBERED:
            self._newest[own] = version
        if b"RECURRENCE-ID" in raw.upper():
            with suppress(BadRecord):
                entry = self._entry("VEVENT", raw)
                self._replaced.update(entry.replaced())
                if (move := entry.shifted()) is not None:
                    uid, shift = move
                    self._shifts.setdefault(uid, []).append(shift)

    def _learn(self, line: str) -> None:
        name, _, value = line.strip().partition(":")
        match name.partition(";")[0].upper():
            case "VERSION":
                self._is_old = value.strip() == "1.0"
            case "X-WR-CALNAME" if value:
                self._name = one_line(_ESCAPED.sub(r"\1", value), 200)
            case "X-WR-TIMEZONE":
                self._own_zone = named_zone(value, self._zones) or self._own_zone
            case _:
                pass

    def _component(self, piece: Component) -> Iterator[SourceItem]:
        position_text, position = (
            self._member.where(piece.offset),
            self._member.offset + piece.offset,
        )
        if piece.raw is None:
            yield Skipped(position_text, *piece.fault, position)
        elif piece.name == "VTIMEZONE":
            pass  # learnt before
        elif piece.name == "VEVENT" and self._is_outdated(piece.raw):
            yield Skipped(
                position_text,
                "duplicate",
                "the file contains a newer version of the event",
                position,
            )
        else:
            raw, unreadable = piece.raw, 0
            if piece.name == "VFREEBUSY":
                raw, unreadable = _with_readable_times(raw)
            for _ in range(unreadable):
                yield Skipped(
                    position_text,
                    "bad_date",
                    "one of the times of the event cannot be read",
                    position,
                )
            if not unreadable or _BUSY.search(raw):
                build = partial(self._records, piece.name, raw, position)
                yield from one_record(position_text, position, build)

    def _is_outdated(self, raw: bytes) -> bool:
        own = _identity(raw)
        return own != b"" and _version(raw) < self._newest.get(own, (-1, b""))

    def _learn_zone(self, raw: bytes) -> None:
        """A zone the calendar defines itself, for names that no database knows."""
        try:
            zone = cast(Any, Timezone.from_ical(lines_of(raw)))
            name, location = str(zone["TZID"]), str(zone.get("X-LIC-LOCATION", ""))
            located = named_zone(location, {})
            distances = [subcomponent["TZOFFSETTO"].td for subcomponent in zone.subcomponents]
            if differs_from_iana(name, distances) or differs_from_iana(location, distances):
                self._differing[name] = zone.to_tz(lookup_tzid=False)
            self._zones[name] = located or zone.to_tz(lookup_tzid=False)
        except FAULTS:
            return

    def _records(self, name: str, raw: bytes, position: int) -> Iterator[SourceItem]:
        entry = self._entry(name, raw)
        match name:
            case "VEVENT":
                yield from self._event(entry, position)
            case "VTODO":
                yield SourceRecord("tasks", entry.task(), position)
            case "VJOURNAL":
                yield SourceRecord("journal", entry.journal(), position)
            case _:
                times = [SourceRecord("busy_times", t, position) for t in entry.busy_times()]
                if not times:
                    raise BadRecord("empty_busy_times", "the entry lists no busy times")
                yield from times

    def _event(self, entry: CalendarEntry, position: int) -> Iterator[SourceItem]:
        event = entry.event()
        yield SourceRecord("events", event, position)
        try:
            shifts = sorted(self._shifts.get(event["uid"], ()), key=lambda shift: shift.since)
            for slot in entry.slots(event, *self._span, self._replaced, shifts):
                yield SourceRecord("agenda", slot, position)
        except BadRecord as bad:
            yield Skipped("agenda", bad.code, bad.reason, position)

    def _entry(self, name: str, raw: bytes) -> CalendarEntry:
        entry = parsed(_KINDS[name], modern(raw) if self._is_old else raw)
        return CalendarEntry(entry, self._name, self._zone_of, self._own_zone)

    def _zone_of(self, name: str | None) -> tzinfo:
        """The zone of that name: one defined here, one everybody knows, else the calendar's."""
        if name is not None and (own := self._differing.get(name)) is not None:
            return own
        zone = named_zone(name, self._zones) if name is not None else None
        return zone or self._own_zone or self._zone


def _with_readable_times(raw: bytes) -> tuple[bytes, int]:
    """Without the times that cannot be read, and how many those are; one would take all along.

    What it says of the whole span is left out too: nothing is made of it.
    """
    lines, unreadable = list[bytes](), 0
    for line in lines_of(raw).encode().splitlines():
        if not _BUSY.match(line):
            lines += [] if _SPAN.match(line) else [line]
            continue
        head, _, times_text = line.rpartition(b":")
        times = times_text.split(b",")
        readable = [time for time in times if _is_period(time.decode())]
        unreadable += len(times) - len(readable)
        lines += [head + b":" + b",".join(readable)] if readable else []
    return b"\r\n".join(lines), unreadable


def _is_period(text: str) -> bool:
    try:
        cast(Any, vPeriod).from_ical(text)
    except FAULTS:
        return False
    return True


def _identity(raw: bytes) -> bytes:
    """What two versions of an event share; nothing for one without an id."""
    uid, occurrence = _UID.search(raw), _OCCURRENCE.search(raw)
    return (uid.group() + (occurrence.group() if occurrence else b"")) if uid else b""


def _version(raw: bytes) -> tuple[int, bytes]:
    """Which of two is newer: by its number, else by when it was written."""
    number, written = _SEQUENCE.search(raw), _WRITTEN.search(raw)
    return int(number.group(1)) if number else 0, written.group(1) if written else b""
