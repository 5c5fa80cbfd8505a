"""What a calendar holds, in the words of the consent page."""

from __future__ import annotations

from personal_server.sources.declaration import (
    Field,
    Stream,
    day,
    declaration,
    flag,
    integer,
    key,
    moment,
    names,
    plain,
    reference,
    text,
    word,
)


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


EVENTS = Stream(
    "events",
    "Your calendar events",
    "Title, time, place and people of every event.",
    [
        *_shared(),
        moment("starts_at", "When it begins, in UTC; all-day events at midnight UTC", event=True),
        moment("ends_at", "When it ends, in UTC"),
        day("starts_on", "Day it begins, by its own time zone"),
        flag("all_day", "Whether it takes whole days"),
        plain("time_zone", "Time zone it was entered in"),
        word("organizer", "Who invited"),
        names("attendees", "Who was invited"),
        integer("attendee_count", "How many were invited", summed=True),
        text("people", "Who invited and who was invited, to search in"),
        flag("is_recurring", "Whether it repeats; then the times are those of the first"),
        plain("recurrence_rule", "How it repeats (RFC 5545 RRULE)"),
        moment("replaces_occurrence_at", "Occurrence of a repeating event that this one replaces"),
    ],
    time_field="starts_at",
    children={"agenda": ("agenda", "event_id")},
    views={"busy": ("When you were busy, without titles", ["id", "starts_at", "ends_at"])},
    semantic=["title", "description"],
)

TASKS = Stream(
    "tasks",
    "Your tasks",
    "Title, due time and state of every task.",
    [
        *_shared(),
        moment("due_at", "When it is due, in UTC", event=True),
        moment("completed_at", "When it was done"),
        flag("is_completed", "Whether it is done"),
        integer("priority", "1 is highest, 9 lowest"),
    ],
    time_field="due_at",
)

AGENDA = Stream(
    "agenda",
    "Your calendar, day by day",
    "Every event at each time it takes place: repeating ones spelled out, a year ahead.",
    [
        key(),
        reference("event_id", "The event", required=True),
        word("calendar", "Name of the calendar"),
        text("title", "What it is", title=True),
        text("location", "Where it is"),
        text("people", "Who invited and who was invited, to search in"),
        moment("starts_at", "When it begins, in UTC; all-day events at midnight UTC", event=True),
        moment("ends_at", "When it ends, in UTC"),
        day("starts_on", "Day it begins, by its own time zone"),
        flag("all_day", "Whether it takes whole days"),
        integer("minutes", "How long it takes, in minutes; none for whole days", summed=True),
    ],
    time_field="starts_at",
    views={"busy": ("When you are busy, without titles", ["id", "starts_at", "ends_at"])},
    parents={"event": ("events", "event_id")},
)

DECLARATION = declaration(
    "calendar", "Calendar", "Events and tasks of your calendars.", [EVENTS, AGENDA, TASKS]
)

HOW_TO_EXPORT = (
    "Google: takeout.google.com, choose Calendar. Apple: Calendar > File > Export. Outlook: save "
    "the calendar as an .ics file. Any .ics file or folder of them."
)
