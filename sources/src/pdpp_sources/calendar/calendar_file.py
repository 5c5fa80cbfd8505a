"""One iCalendar file on its way to records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, tzinfo
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

from icalendar import Component as ParsedComponent
from icalendar import Event, FreeBusy, Journal, Timezone, Todo, vPeriod

from pdpp_kernel.source_item import Skipped, SourceItem, SourceRecord
from pdpp_kernel.texts import message
from pdpp_sources.calendar.entry import FAULTS, CalendarEntry, Replaced, Shifted, lines_of, parsed
from pdpp_sources.calendar.vcalendar import modern
from pdpp_sources.calendar.zones import differs_from_iana, named_zone
from pdpp_sources.common.components import Component, cut_components
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.source import MOST_REMEMBERED, one_record
from pdpp_sources.common.text import decoded, one_line

_UID = re.compile(rb"^UID[:;][^\r\n]*", re.MULTILINE)
_OCCURRENCE = re.compile(rb"^RECURRENCE-ID[:;][^\r\n]*", re.MULTILINE)
_SEQUENCE = re.compile(rb"^SEQUENCE:(\d{1,9})", re.MULTILINE)
_WRITTEN = re.compile(rb"^LAST-MODIFIED:([^\r\n]*)", re.MULTILINE)
_BUSY = re.compile(rb"^FREEBUSY[:;]", re.MULTILINE | re.IGNORECASE)
_SPAN = re.compile(rb"(?:DTSTART|DTEND|DURATION)[:;]", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([\\,;])")
_COMPONENTS = frozenset({"VEVENT", "VTODO", "VTIMEZONE", "VJOURNAL", "VFREEBUSY"})
_KINDS: dict[str, type[ParsedComponent]] = {
    "VEVENT": Event,
    "VTODO": Todo,
    "VJOURNAL": Journal,
    "VFREEBUSY": FreeBusy,
}


class CalendarFile:
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
        """Its entries, after a first look at all of them: a later one may change an earlier."""
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
