"""Calendars: iCalendar files of Google, Apple, Outlook and everyone else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
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
    shared,
    text,
    word,
)
from pdpp_sources.common.export import Export
from pdpp_sources.common.source import (
    MOST_REMEMBERED,
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    without_repeats,
)
from pdpp_sources.common.unit_fields import in_unit

# A repeating event is spelled out from so long before the export to so long after it.
BEFORE = timedelta(days=20 * 365)
AHEAD = timedelta(days=400)
_CALENDAR = re.compile(
    rb"^\s*(\xef\xbb\xbf)?BEGIN:(VCALENDAR|VEVENT|VTODO|VJOURNAL|VFREEBUSY)", re.IGNORECASE
)
_SUFFIXES = (".ics", ".vcs", ".ical", ".ifb", ".icalendar", ".txt", "")


def _shared() -> list[Field]:
    return [
        key(),
        word("calendar", "Name of the calendar"),
        shared(text("title", "What it is", title=True)),
        text("description", "Notes"),
        text("location", "Where it is"),
        word("status", "confirmed, tentative, cancelled …"),
        names("categories", "Categories"),
        plain("url", "Address on the web"),
        plain("uid", "The calendar's own id"),
        moment("created_at", "When it was entered"),
        moment("updated_at", "When it was last changed"),
    ]


def _minutes(about: str) -> Field:
    return in_unit(integer("minutes", about, summed=True), unit="min")


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
        _minutes("How long it takes, each time, in minutes; none for whole days"),
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
        shared(text("title", "What it is", title=True)),
        text("location", "Where it is"),
        sent_to(text("people", "Who invited and who was invited, to search in")),
        moment("starts_at", "When it begins, in UTC; all-day events at midnight UTC", event=True),
        ending(moment("ends_at", "When it ends, in UTC")),
        day("starts_on", "Day it begins, by its own time zone"),
        by_days(flag("all_day", "Whether it takes whole days")),
        _minutes("How long it takes, in minutes; none for whole days"),
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
        _minutes("How long it takes, in minutes"),
    ],
    time_field="starts_at",
)
DECLARATION = declaration(
    "calendar",
    "Calendar",
    "Events, tasks and journal of your calendars.",
    [EVENTS, AGENDA, TASKS, JOURNAL, BUSY_TIMES],
)


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
        # its library takes a quarter of a second to load, and most exports are no calendar
        from pdpp_sources.calendar.calendar_file import CalendarFile  # noqa: PLC0415

        captured_at = export.captured_at
        span = ((captured_at - BEFORE).date(), (captured_at + AHEAD).date())
        items = each_member(export, lambda member: CalendarFile(member, export.zone, span).items())
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
