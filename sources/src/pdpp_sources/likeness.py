"""What a file looks like that no source claims: what it is short of, and who might read it still.

A likeness is no claim. It is told to the owner, with `--as NAME` where that source was tried and
found something in it (`sources/registry.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pdpp_kernel.texts import message
from pdpp_sources.tables.files import could_be_table
from pdpp_sources.whatsapp import holds_messages

SEE_SOURCES = message("See `pdpp sources` for what can be read.")


@dataclass(frozen=True, slots=True)
class Likeness:
    """A kind of file, how its first bytes show it, and why it is no export of a source.

    Shapes: `connector_key` is the source that may read it all the same; `next_step` is what works
        where that one finds nothing, or there is none.
    """

    shown_by: Callable[[bytes], object]
    sentence: str
    connector_key: str | None = None
    next_step: str = SEE_SOURCES


def _within(pattern: bytes) -> Callable[[bytes], object]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE).search


def _at_start(*marks: bytes) -> Callable[[bytes], object]:
    return lambda head: head.lstrip().startswith(marks)


_NO_PICTURE = message("Pictures come in with the mails, chats and notes they belong to.")
_GET_ANEW = message("Get the export anew from where it came from: `pdpp sources` says how.")

# The surest first. What bears a mark of its own comes before what any text may hold.
LIKENESSES = (
    Likeness(
        _at_start(b"%PDF"),
        "It is a PDF, which no source reads.",
        next_step="Look for an export as CSV, OFX or JSON where it came from.",
    ),
    Likeness(
        _at_start(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF"),
        "It is a picture, which no source reads by itself.",
        next_step=_NO_PICTURE,
    ),
    Likeness(
        _at_start(b"\xd0\xcf\x11\xe0"),
        "It is a document or a mail of Office, which no source reads.",
        next_step="Save a sheet as CSV (UTF-8), a mail as .eml, and import that.",
    ),
    Likeness(
        _at_start(b"bplist"),
        "It is a property list of Apple's, and not one of Safari's bookmarks.",
    ),
    Likeness(
        _within(rb"^BEGIN:V(?:CALENDAR|EVENT|TODO|JOURNAL|FREEBUSY)\s*$"),
        "It looks like a calendar, but does not begin as one (BEGIN:VCALENDAR) or is not called so"
        " (.ics).",
        "calendar",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"^BEGIN:(?:VTIMEZONE|VALARM)\s*$"),
        "It looks like a calendar, but holds no event, task or journal entry.",
        next_step=_GET_ANEW,
    ),
    Likeness(
        _within(rb"^BEGIN:VCARD\s*$"),
        "It looks like contacts, but does not begin as a card (BEGIN:VCARD) or is not called so"
        " (.vcf).",
        "contacts",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"<STMTTRN>|<OFX>|OFXHEADER"),
        "It looks like a bank statement, but what stands before <OFX> is no header of one.",
        "bank",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"<HealthData\b"),
        "It looks like an export of Apple Health, but does not begin as one (<HealthData>).",
        "apple_health",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"<(?:gpx|kml|TrainingCenterDatabase)\b"),
        "It is a route or a workout (GPX, KML, TCX), which is read inside an export of Apple Health"
        " only.",
    ),
    Likeness(
        _at_start(b"<!doctype html", b"<!DOCTYPE html", b"<!DOCTYPE HTML", b"<html", b"<HTML"),
        "It is a web page, and none of those in which Google exports activity or browsers their"
        " bookmarks.",
        next_step="Ask the platform for JSON in place of HTML: `pdpp sources` says how.",
    ),
    Likeness(_at_start(b"<"), "It is XML or HTML of a form that no source knows."),
    Likeness(
        _at_start(b"{", b"["),
        "It is JSON without any object, or none that can be read.",
        next_step="A list of objects, or one object a line, can be read: save it so, and import"
        " that.",
    ),
    Likeness(
        re.compile(
            rb"\A(?:[!-9;-~]+:.*\r?\n(?:[ \t].*\r?\n)*){0,30}?"
            rb"(?:From|Subject|Message-ID|Received|MIME-Version|Content-Type):",
            re.IGNORECASE,
        ).match,
        "It looks like a mail, but its head lacks three known lines, From, Received or Message-ID"
        " among them.",
        "mail",
        _GET_ANEW,
    ),
    Likeness(
        holds_messages,
        "It looks like a chat of WhatsApp, but most of its first lines belong to no message.",
        "whatsapp",
        _GET_ANEW,
    ),
    Likeness(
        could_be_table,
        "It is text of a form that no source knows, and not called a table (.csv).",
        "table",
    ),
)
NEITHER = Likeness(
    lambda _: True,
    "No source can read this kind of file: it is not text, and its format is unknown.",
)


def likeness_of(head: bytes) -> Likeness:
    """What some first bytes look like."""
    return next((each for each in LIKENESSES if each.shown_by(head)), NEITHER)
