"""What a file looks like that no source claims: what it is short of, and who might read it still.

A likeness is no claim. It is told to the owner, with `--as NAME` where that source was tried and
found something in it (`sources/registry.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from pdpp_kernel.texts import message
from pdpp_sources.tables.files import could_be_table
from pdpp_sources.whatsapp import holds_messages

SEE_SOURCES = message("Run `pdpp sources` to see what can be imported.")


class Likeness(msgspec.Struct, frozen=True):
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


_NO_PICTURE = message(
    "Pictures are imported together with the mails, chats and notes that they belong to."
)
_GET_ANEW = message(
    "Export this again from the app or site where the data came from: `pdpp sources` explains how."
)

# The surest first. What bears a mark of its own comes before what any text may hold.
LIKENESSES = (
    Likeness(
        _at_start(b"%PDF"),
        "This file is a PDF, and PDFs cannot be imported.",
        next_step="Look for an export as CSV, OFX or JSON where the PDF came from.",
    ),
    Likeness(
        _at_start(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF"),
        "This file is a picture. Pictures cannot be imported on their own.",
        next_step=_NO_PICTURE,
    ),
    Likeness(
        _at_start(b"\xd0\xcf\x11\xe0"),
        "This file is an Office document or mail, and those cannot be imported.",
        next_step="Save a sheet as CSV (UTF-8) or a mail as .eml, and import that file.",
    ),
    Likeness(
        _at_start(b"bplist"),
        "This file is an Apple property list, but not one with Safari's bookmarks.",
    ),
    Likeness(
        _within(rb"\A\s*window\.(?:YTD\.|__THAR_CONFIG)"),
        "This is a file of an archive of X (Twitter): a program that contains JSON.",
        next_step=message(
            "Delete all that stands before the first [ in the file, save the file as .json, "
            "and import that."
        ),
    ),
    Likeness(
        _within(rb'class="page_body chat_page"|<div class="page_about details with_divider"'),
        "This is Telegram's export as pages (HTML), which is not imported.",
        "telegram",
        message(
            "In Telegram Desktop export it again and choose JSON (machine-readable) as the format."
        ),
    ),
    Likeness(
        _within(rb'class="_a7?[0-9]-?[a-z]|class="(?:pam )?_3-95|chatlog__message|"_2lel"'),
        "This is an export of chats or posts as pages (HTML), which is not imported.",
        next_step=message("Ask for the export again and choose JSON as its format."),
    ),
    Likeness(
        re.compile(
            rb"\A(?:\xef\xbb\xbf|\xe2\x80\x8e)*(?:\[\d{1,4}[./-]\d{1,2}[./-]\d{2,4}[^\]\r\n:]{3,25}\]"
            rb"|\d{1,2}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[^:\d]\d\d[^:\r\n]{0,12} - )",
        ).match,
        (
            "This file looks like a WhatsApp chat, but the colons in its times are missing, as "
            "after it was saved by a spreadsheet."
        ),
        "whatsapp",
        message("Export the chat again in WhatsApp, and import the file as it is."),
    ),
    Likeness(
        _within(rb"^BEGIN:V(?:CALENDAR|EVENT|TODO|JOURNAL|FREEBUSY)\s*$"),
        (
            "This file looks like a calendar, but does not begin like one "
            "(BEGIN:VCALENDAR), or its name does not end in .ics."
        ),
        "calendar",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"^BEGIN:(?:VTIMEZONE|VALARM)\s*$"),
        "This file looks like a calendar, but contains no event, task or journal entry.",
        next_step=_GET_ANEW,
    ),
    Likeness(
        _within(rb"^BEGIN:VCARD\s*$"),
        (
            "This file looks like contacts, but does not begin like a card "
            "(BEGIN:VCARD), or its name does not end in .vcf."
        ),
        "contacts",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"<STMTTRN>|<OFX>|OFXHEADER"),
        "This file looks like a bank statement, but has no valid header before <OFX>.",
        "bank",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"<(?:[\w.-]{1,32}:)?BkToCstmrDbtCdtNtfctn[\s>]"),
        "This is a bank's notification of payments (camt.054), and not a statement.",
        next_step=message(
            "Download the statement (camt.053) instead: it has these payments, and all others."
        ),
    ),
    Likeness(
        _within(rb"^:20:.*(?:\r?\n.*){0,12}?\n:(?:25|28C?|60[FM]|61):"),
        "This file looks like a bank statement (MT940), but other text stands before its :20:.",
        "bank",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"<HealthData\b"),
        "This file looks like an Apple Health export, but does not begin like one (<HealthData>).",
        "apple_health",
        _GET_ANEW,
    ),
    Likeness(
        _within(rb"<(?:gpx|kml|TrainingCenterDatabase)\b"),
        (
            "This file looks like a route or a workout (GPX, KML, TCX), but it is damaged, or "
            "other text stands before it."
        ),
        next_step=_GET_ANEW,
    ),
    Likeness(
        _at_start(b"<!doctype html", b"<!DOCTYPE html", b"<!DOCTYPE HTML", b"<html", b"<HTML"),
        "This file is a web page, but not one with Google activity or a browser's bookmarks.",
        next_step="Ask the platform for JSON instead of HTML: `pdpp sources` explains how.",
    ),
    Likeness(_at_start(b"<"), "This file is XML or HTML of an unknown format."),
    Likeness(
        _at_start(b"{", b"["),
        "This file is JSON, but no object in it can be read.",
        next_step=(
            "Save the data as a list of JSON objects, or as one object per line, and "
            "import that file."
        ),
    ),
    Likeness(
        re.compile(
            rb"\A(?:[!-9;-~]+:.*\r?\n(?:[ \t].*\r?\n)*){0,30}?"
            rb"(?:From|Subject|Message-ID|Received|MIME-Version|Content-Type):",
            re.IGNORECASE,
        ).match,
        (
            "This file looks like a mail, but lacks three known header lines, such as "
            "From, Received or Message-ID."
        ),
        "mail",
        _GET_ANEW,
    ),
    Likeness(
        holds_messages,
        "This file looks like a WhatsApp chat, but most of its first lines belong to no message.",
        "whatsapp",
        _GET_ANEW,
    ),
    Likeness(
        could_be_table,
        "This file is text of an unknown format. If it is a table, its name must end in .csv.",
        "table",
    ),
)
NEITHER = Likeness(
    lambda _: True,
    "Files of this kind cannot be imported: the file is not text, and its format is unknown.",
)


def likeness_of(head: bytes) -> Likeness:
    """What some first bytes look like."""
    return next((likeness for likeness in LIKENESSES if likeness.shown_by(head)), NEITHER)
