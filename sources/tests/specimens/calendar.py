"""A small export: a calendar, with something broken in it."""

from __future__ import annotations

from sources.tests.specimens.files import Files

CALENDAR = """\
BEGIN:VCALENDAR\r
X-WR-CALNAME:Home\r
X-WR-TIMEZONE:Europe/Rome\r
BEGIN:VTIMEZONE\r
TZID:/vendor/Custom\r
BEGIN:STANDARD\r
DTSTART:16010101T000000\r
TZOFFSETFROM:+0500\r
TZOFFSETTO:+0500\r
END:STANDARD\r
END:VTIMEZONE\r
BEGIN:VEVENT\r
UID:1@example.org\r
DTSTART;TZID=/vendor/Custom:20240105T100000\r
DURATION:PT90M\r
SUMMARY:Caffè\\, and a very long title that goes on and on until the line has\r
  to be folded\r
ATTENDEE;CN="Byron, Ann":mailto:ann@example.org\r
CATEGORIES:work,coffee\r
RRULE:FREQ=WEEKLY;COUNT=4\r
BEGIN:VALARM\r
TRIGGER:-PT5M\r
END:VALARM\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:1@example.org\r
RECURRENCE-ID;TZID=/vendor/Custom:20240112T100000\r
DTSTART:20240112T110000\r
SUMMARY:Floating, so Rome\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:2@example.org\r
DTSTART;VALUE=DATE:20240201\r
SUMMARY:All day\r
END:VEVENT\r
BEGIN:VEVENT\r
UID:3@example.org\r
SUMMARY:Never begins\r
END:VEVENT\r
BEGIN:VTODO\r
UID:4@example.org\r
SUMMARY:Sow beans\r
DUE:20240501T080000Z\r
STATUS:COMPLETED\r
END:VTODO\r
BEGIN:VJOURNAL\r
UID:5@example.org\r
SUMMARY:Rain\r
DTSTART;VALUE=DATE:20240103\r
END:VJOURNAL\r
BEGIN:VFREEBUSY\r
UID:6@example.org\r
ATTENDEE:mailto:ann@example.org\r
FREEBUSY:20240103T080000Z/PT1H\r
END:VFREEBUSY\r
BEGIN:VFREEBUSY\r
UID:7@example.org\r
DTSTART:20240103T080000Z\r
END:VFREEBUSY\r
END:VCALENDAR\r
""".encode()

FILES: Files = {"Calendar/Home.ics": CALENDAR}
