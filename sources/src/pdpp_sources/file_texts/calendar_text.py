"""The text of calendar files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pdpp_sources.common.text import decoded
from pdpp_sources.file_texts.draft import Draft

_FOLDED = re.compile(r"\r?\n[ \t]")
_LINE = re.compile(r'([A-Za-z-]+)((?:;[A-Za-z-]+=(?:"[^"\r\n]*"|[^:;"\r\n]*))*):(.*)')
_ZONE = re.compile(r';(?:TZID)="?([^";:]+)', re.IGNORECASE)
_NAME = re.compile(r';CN=(?:"([^"]+)"|([^;:]+))', re.IGNORECASE)
_INSTANT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?\Z")
_ENTRIES = frozenset({"VEVENT", "VTODO", "VJOURNAL"})
_SHOWN = {
    "SUMMARY": "",
    "DTSTART": "Begins: ",
    "DTEND": "Ends: ",
    "DUE": "Due: ",
    "LOCATION": "Where: ",
    "ORGANIZER": "Invited by: ",
    "ATTENDEE": "With: ",
    "URL": "Page: ",
    "DESCRIPTION": "",
}


def read_calendar(content: bytes, draft: Draft) -> None:
    """Each entry as its lines, without alarms and zones."""
    inside: list[str] = []
    for line in _FOLDED.sub("", decoded(content)).splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        name, parameters, value = match.groups()
        if name.upper() == "BEGIN":
            inside.append(value.strip().upper())
        elif name.upper() == "END" and inside:
            draft.add("\n" if inside.pop() in _ENTRIES else "")
        elif inside and inside[-1] in _ENTRIES and name.upper() in _SHOWN:
            draft.goes_on()
            text = "".join(_said(name.upper(), parameters, value))
            draft.add(f"{_SHOWN[name.upper()]}{text}\n" if text else "")


def _said(name: str, parameters: str, value: str) -> Iterator[str]:
    instant, attendee = _INSTANT.match(value), _NAME.search(parameters)
    if name in ("ORGANIZER", "ATTENDEE"):
        address = re.sub("^mailto:", "", value, flags=re.IGNORECASE)
        yield f"{attendee[1] or attendee[2]} <{address}>" if attendee else address
    elif instant:
        year, month, day, hour, minute, is_utc = instant.groups()
        zone = _ZONE.search(parameters)
        yield f"{year}-{month}-{day}"
        yield f" {hour}:{minute}" if hour else ""
        yield " UTC" if is_utc else f" {zone[1]}" if zone and hour else ""
    else:
        yield re.sub(r"\\([nN,;\\])", lambda m: "\n" if m[1] in "nN" else m[1], value)
